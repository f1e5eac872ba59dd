"""How a turn changes: one event in, the next value out. Total, and always `version + 1`.

Nothing is decided here. An event that does not fit the state it meets means that the journal is
not the journal of this turn, which is a fault of ours (`JournalError`).
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from app.turn import events as e
from app.turn.evolve_calls import asked_at, call_changed, failing, without_call
from app.turn.evolve_waits import wait_changed
from app.turn.open_calls import OpenCall
from app.turn.state import (
    CallingModel,
    Cancelled,
    Completed,
    Failed,
    LimitReached,
    ModelDue,
    Paused,
    Ready,
    RetryScheduled,
    RunningTools,
    Terminal,
    ToolRetryScheduled,
    ToolsDue,
    Turn,
    WaitingForCalls,
    WaitingForModel,
    WaitingForUser,
)
from app.turn.status import LimitName, ResumedBy
from app.turn.transcript import NoticeMessage, Usage, UserMessage


class JournalError(RuntimeError):
    """A journal that no turn can have had."""


def begin(event: e.TurnStarted) -> Turn:
    """The turn as its first event makes it."""
    return Turn(
        identity=event.identity,
        version=1,
        state=Ready(held=event.held),
        next_position=event.first_position,
        created_at=event.created_at,
        queue=event.queue,
        resumes_turn_id=event.resumes_turn_id,
        model=event.model,
    )


def fold(events: Iterable[e.Event]) -> Turn:
    """The turn that a whole journal tells of.

    Raises:
        JournalError: when it does not begin with `TurnStarted`.
    """
    iterator = iter(events)
    first = next(iterator, None)
    if not isinstance(first, e.TurnStarted):
        message = "a journal begins with TURN_STARTED"
        raise JournalError(message)
    return advance(begin(first), iterator)


def advance(turn: Turn, events: Iterable[e.Event]) -> Turn:
    """`evolve` over several events."""
    for event in events:
        turn = evolve(turn, event)
    return turn


def evolve(turn: Turn, event: e.Event) -> Turn:
    """The turn after `event`."""
    return replace(_changed(turn, event), version=turn.version + 1)


def _changed(turn: Turn, event: e.Event) -> Turn:  # noqa: C901, PLR0912 - it only routes
    match event:
        case e.ModelStarted() | e.ModelText() | e.ModelReasoning() | e.ModelCompleted():
            return _model_changed(turn, event)
        case e.ToolRequested() | e.ToolStarted() | e.ToolAttemptFailed():
            return call_changed(turn, event)
        case e.ToolInterrupted(position=position) if isinstance(turn.state, Ready):
            return replace(
                turn, next_position=position + 1
            )  # a call of the history it goes on with
        case e.ToolFailed(fails_turn=True, failure=failure):
            return without_call(failing(turn, failure), event.result.call_id)
        case e.ToolCompleted(question=str(question)):
            asking = replace(turn, questions=(*turn.questions, question))
            return without_call(asking, event.result.call_id)
        case (
            e.ToolCompleted()
            | e.ToolFailed()
            | e.ToolInterrupted()
            | e.ToolSkipped()
            | e.ToolRejected()
            | e.ExternalToolCompleted()
            | e.ExternalToolFailed()
        ):
            return without_call(turn, event.result.call_id)
        case (
            e.ToolApprovalRequested()
            | e.ToolInputRequested()
            | e.ExternalToolRequested()
            | e.ToolPutAside()
            | e.ToolApprovalDecided()
            | e.ToolInputReceived()
            | e.ExternalToolCancelRequested()
            | e.WaitExpired()
        ):
            return wait_changed(turn, event)
        case e.TurnSuspended() | e.RetryWasScheduled() | e.TurnPaused() | e.TurnResumed():
            return _wait_changed(turn, event)
        case e.InputQueued() | e.InputPromoted() | e.InputWithdrawn():
            return _queue_changed(turn, event)
        case e.StepRecovered():
            return _recovered(turn)
        case e.MessageAdded():
            return _said(turn, event)
        case e.OutputReady(output=output):
            return replace(turn, output=output)
        case e.StepStarted():
            return replace(turn, counters=turn.counters.plus(steps=1), unread=(), is_taken_up=True)
        case e.ModelFailed():
            counters = turn.counters.plus(model_failures=1)
            return replace(turn, counters=counters, usage=_added(turn.usage, event.usage))
        case e.CancellationRequested():
            return replace(turn, cancel_requested=True)
        case e.PauseRequested():
            return replace(turn, pause_requested=True)
        case e.ModelStopped():
            return replace(turn, usage=_added(turn.usage, event.usage))
        case e.StepCompleted():
            return turn
        case _:
            return replace(turn, state=_ended(event))


def _queue_changed(turn: Turn, event: e.InputQueued | e.InputPromoted | e.InputWithdrawn) -> Turn:
    if isinstance(event, e.InputQueued):
        return replace(turn, queue=(*turn.queue, event.queued))
    left = tuple(q for q in turn.queue if q.message.message_id != event.message_id)
    if isinstance(event, e.InputWithdrawn):
        return replace(turn, queue=left)
    # What a user says begins a new chain of retries, as every message does (2.3).
    counters = replace(turn.counters, consecutive_retries=0)
    return replace(turn, queue=left, counters=counters)


def _ended(
    event: e.TurnCompleted
    | e.TurnFailed
    | e.TurnCancelled
    | e.MaxIterationsReached
    | e.MaxStepsReached
    | e.BudgetExceeded
    | e.TurnStarted,
) -> Terminal:
    match event:
        case e.TurnCompleted(stop_reason=stop_reason, position=position):
            return Completed(stop_reason=stop_reason, position=position)
        case e.TurnFailed(reason=reason):
            return Failed(reason=reason)
        case e.TurnCancelled():
            return Cancelled()
        case e.MaxIterationsReached(used=used, allowed=allowed):
            return LimitReached(limit=LimitName.ITERATIONS, used=used, allowed=allowed)
        case e.MaxStepsReached(used=used, allowed=allowed):
            return LimitReached(limit=LimitName.STEPS, used=used, allowed=allowed)
        case e.BudgetExceeded(reason=reason, used=used, allowed=allowed):
            return LimitReached(limit=reason, used=used, allowed=allowed)
        case e.TurnStarted():
            message = "a turn starts once"
            raise JournalError(message)


def _model_changed(
    turn: Turn, event: e.ModelStarted | e.ModelText | e.ModelReasoning | e.ModelCompleted
) -> Turn:
    match event:
        case e.ModelStarted(attempt_id=attempt_id):
            counters = turn.counters.plus(model_attempts=1)
            return replace(turn, state=CallingModel(attempt_id=attempt_id), counters=counters)
        case e.ModelText(offset=offset, text=text):
            stored = offset + len(text)
            return replace(turn, state=replace(_calling(turn), text_stored=stored))
        case e.ModelReasoning(offset=offset, text=text):
            stored = offset + len(text)
            return replace(turn, state=replace(_calling(turn), reasoning_stored=stored))
        case e.ModelCompleted():
            return _answered(turn, event)


def _answered(turn: Turn, event: e.ModelCompleted) -> Turn:
    counters = replace(turn.counters.plus(model_successes=1), consecutive_retries=0)
    return replace(
        turn,
        state=ModelDue(),
        next_position=turn.next_position if event.position is None else event.position + 1,
        counters=counters,
        usage=_added(turn.usage, event.usage),
    )


def _said(turn: Turn, event: e.MessageAdded) -> Turn:
    cause = event.message.cause if isinstance(event.message, NoticeMessage) else None
    is_users = isinstance(event.message, UserMessage)
    return replace(
        turn,
        next_position=event.position + 1,
        is_repaired=turn.is_repaired or cause == "output_invalid",
        told_at=event.position if cause == "retry_response" else turn.told_at,
        unread=(*turn.unread, event.position) if is_users else turn.unread,
    )


def _wait_changed(
    turn: Turn, event: e.TurnSuspended | e.RetryWasScheduled | e.TurnPaused | e.TurnResumed
) -> Turn:
    match event:
        case e.TurnSuspended(question=str(question)):
            return _asked(turn, question, event)
        case e.TurnSuspended():
            return replace(turn, state=_suspended(turn, event))
        case e.RetryWasScheduled(due_at=due_at):
            return _scheduled(turn, due_at)
        case e.TurnPaused():
            return replace(
                turn,
                state=_paused(turn, event),
                pause_requested=False,
                waited=turn.waited + held_for(turn, at=event.requested_at),
            )
        case e.TurnResumed(command_type="RUN", waited=waited):
            return replace(turn, state=Ready(), waited=turn.waited + waited)
        case e.TurnResumed():
            return _resumed(turn, event)


def held_for(turn: Turn, *, at: datetime) -> timedelta:
    """How long the turn has been on hold at the moment `at`; nothing when it is not."""
    return max(at - turn.created_at, timedelta(0)) if turn.is_held else timedelta(0)


def _asked(turn: Turn, question: str, event: e.TurnSuspended) -> Turn:
    """Everything that was to be asked has been; what the asking hook has read is read."""
    calls = turn.open_calls
    state = WaitingForUser(
        question=question,
        requested_at=event.requested_at,
        asked_at=asked_at(turn) if calls else None,
        calls=calls,
        policy=event.policy,
    )
    unread = turn.unread[event.heard :]
    return replace(turn, state=state, questions=(), unread=unread, is_taken_up=True)


def _paused(turn: Turn, event: e.TurnPaused) -> Paused:
    calls = tuple(replace(call, in_flight=False) for call in turn.open_calls)
    return Paused(
        cause=event.cause,
        requested_at=event.requested_at,
        limit=event.limit,
        asked_at=asked_at(turn) if calls else None,
        calls=calls,
        text_kept=_has_text(turn),
    )


def _has_text(turn: Turn) -> bool:
    return isinstance(turn.state, CallingModel) and turn.state.text_stored > 0


def _resumed(turn: Turn, event: e.TurnResumed) -> Turn:
    """On at the cursor: what is still open is run, else the model is called.

    What the user says meanwhile takes the place of a question that was still to be asked.
    """
    is_retry = event.command_type == "RETRY"
    is_said = event.command_type in {"USER_MESSAGE", "REPLAN_WITH_MESSAGE"}
    kept = turn.counters.consecutive_retries if is_retry else 0
    # Whoever goes on before a retry is due wants it now.
    calls = turn.open_calls if is_retry else _begun_anew(turn, event.command_type)
    return replace(
        turn,
        state=ToolsDue(asked_at=asked_at(turn), calls=calls) if calls else ModelDue(),
        limits=event.limits or turn.limits,
        model=event.model or turn.model,
        waited=turn.waited + event.waited,
        questions=() if is_said else turn.questions,
        counters=replace(turn.counters, consecutive_retries=kept),
    )


def _begun_anew(turn: Turn, command: ResumedBy) -> tuple[OpenCall, ...]:
    """The calls, their chains of retries from the start.

    A retry that is scheduled stays so when it is not what the command is about: another call's
    answer has come.
    """
    is_elsewhere = isinstance(turn.state, ToolRetryScheduled) and command != "CONTINUE"
    return tuple(
        call if is_elsewhere and call.retry_at else replace(call, retry_at=None, retries=0)
        for call in turn.open_calls
    )


def _suspended(
    turn: Turn, event: e.TurnSuspended
) -> WaitingForModel | ToolRetryScheduled | WaitingForCalls:
    if event.record is not None:
        return WaitingForModel(
            record=event.record, requested_at=event.requested_at, text_kept=_has_text(turn)
        )
    if event.call_id is not None:
        return WaitingForCalls(
            requested_at=event.requested_at, asked_at=asked_at(turn), calls=turn.open_calls
        )
    if event.next_runnable_at is None:
        message = "a tool's retry has a time"
        raise JournalError(message)
    return ToolRetryScheduled(
        requested_at=event.requested_at,
        due_at=event.next_runnable_at,
        asked_at=asked_at(turn),
        calls=turn.open_calls,
    )


def _scheduled(turn: Turn, due_at: datetime) -> Turn:
    if isinstance(turn.state, ToolRetryScheduled):
        return turn  # each of its retries was counted when its attempt failed
    if not isinstance(turn.state, WaitingForModel):
        message = "RETRY_SCHEDULED follows TURN_SUSPENDED"
        raise JournalError(message)
    waiting = turn.state
    state = RetryScheduled(record=waiting.record, requested_at=waiting.requested_at, due_at=due_at)
    return replace(turn, state=state, counters=turn.counters.plus(retries=1, consecutive_retries=1))


def _recovered(turn: Turn) -> Turn:
    """Nothing is in flight any more; what had been started stays marked by its attempts.

    A turn that is opened to go on with a history is READY like any other.
    """
    if isinstance(turn.state, Ready):
        return turn
    if isinstance(turn.state, RunningTools):
        calls = tuple(replace(call, in_flight=False) for call in turn.state.calls)
        return replace(turn, state=ToolsDue(asked_at=turn.state.asked_at, calls=calls))
    return replace(turn, state=ModelDue())


def _calling(turn: Turn) -> CallingModel:
    if isinstance(turn.state, CallingModel):
        return turn.state
    message = "text of a model that was not called"
    raise JournalError(message)


def _added(total: Usage, more: Usage) -> Usage:
    return Usage(
        input_tokens=_sum(total.input_tokens, more.input_tokens),
        cached_input_tokens=_sum(total.cached_input_tokens, more.cached_input_tokens),
        output_tokens=_sum(total.output_tokens, more.output_tokens),
    )


def _sum(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more
