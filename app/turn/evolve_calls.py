"""How the open calls of a turn change; the part of `app.turn.evolve` that is about them."""

from app.turn import events as e
from app.turn.ids import CallId
from app.turn.open_calls import OpenCall
from app.turn.replacing import replace
from app.turn.state import Turn
from app.turn.states import (
    ModelDue,
    Paused,
    RunningTools,
    ToolRetryScheduled,
    ToolsDue,
    WaitingForCalls,
    WaitingForUser,
)
from app.turn.status import RoundFailure


def failing(turn: Turn, failure: RoundFailure) -> Turn:
    """It is decided that the turn fails once nothing is in flight; the first reason stays."""
    match turn.state:
        case RunningTools(is_failing=False) as state:
            return replace(turn, state=replace(state, is_failing=True, failure=failure))
        case _:
            return turn


def call_changed(turn: Turn, event: e.ToolRequested | e.ToolStarted | e.ToolAttemptFailed) -> Turn:
    """A call is asked for, begun, or to be tried again."""
    match event:
        case e.ToolRequested():
            call = OpenCall(
                call_id=event.call_id,
                tool_name=event.tool_name,
                effect=event.effect,
                position=event.position,
            )
            state = ToolsDue(asked_at=asked_at(turn), calls=(*turn.open_calls, call))
            return replace(turn, state=state, next_position=event.position + 1)
        case e.ToolStarted(call_id=call_id, attempt=attempt):
            calls = tuple(
                replace(call, attempt=attempt, in_flight=True, retry_at=None)
                if call.call_id == call_id
                else call
                for call in turn.open_calls
            )
            running = RunningTools(
                attempt_id=event.attempt_id, asked_at=asked_at(turn), calls=calls
            )
            return replace(turn, state=running, counters=turn.counters.plus(tool_calls=1))
        case e.ToolAttemptFailed():
            return _attempt_failed(turn, event)


def _attempt_failed(turn: Turn, event: e.ToolAttemptFailed) -> Turn:
    calls = tuple(
        replace(
            call,
            in_flight=False,
            failures=call.attempt - call.asks - call.undone,
            retries=call.retries + 1,
            retry_at=event.retry_at,
            previous_error=event.error,
            scheduled_at=event.retry_at,
            resume="RETRY",
        )
        if call.call_id == event.call_id
        else call
        for call in turn.open_calls
    )
    counters = turn.counters.plus(retries=1, consecutive_retries=1)
    if isinstance(turn.state, RunningTools) and any(call.in_flight for call in calls):
        return replace(turn, state=replace(turn.state, calls=calls), counters=counters)
    return replace(turn, state=ToolsDue(asked_at=asked_at(turn), calls=calls), counters=counters)


def known_undone(call: OpenCall) -> OpenCall:
    """All that was tried so far is known to have done nothing."""
    return replace(call, undone=call.attempt - call.failures - call.asks)


def without_call(turn: Turn, call_id: CallId) -> Turn:
    """The call has its result."""
    calls = tuple(call for call in turn.open_calls if call.call_id != call_id)
    counters = replace(turn.counters, consecutive_retries=0)
    if isinstance(turn.state, Paused | ToolRetryScheduled | WaitingForUser | WaitingForCalls):
        return replace(turn, state=replace(turn.state, calls=calls), counters=counters)
    if not calls:
        return replace(turn, state=ModelDue(), counters=counters)
    if isinstance(turn.state, RunningTools) and any(call.in_flight for call in calls):
        return replace(turn, state=replace(turn.state, calls=calls), counters=counters)
    return replace(turn, state=ToolsDue(asked_at=asked_at(turn), calls=calls), counters=counters)


def asked_at(turn: Turn) -> int:
    """Calls are asked for by the message just added, or by the one their round knows."""
    match turn.state:
        case (
            ToolsDue(asked_at=asked_at)
            | RunningTools(asked_at=asked_at)
            | ToolRetryScheduled(asked_at=asked_at)
            | WaitingForCalls(asked_at=asked_at)
        ):
            return asked_at
        case Paused(asked_at=int(asked_at)) | WaitingForUser(asked_at=int(asked_at)):
            return asked_at
        case _:
            return turn.next_position - 1
