"""How a turn stops and goes on; the part of `app.turn.evolve` that is about it."""

from datetime import datetime, timedelta

from app.turn import events as e
from app.turn.evolve_calls import asked_at
from app.turn.journal import JournalError
from app.turn.open_calls import OpenCall
from app.turn.orphans import CRASHES, has_lost_text, lost_step, still_lost
from app.turn.replacing import replace
from app.turn.state import Turn
from app.turn.states import (
    CompactionDue,
    ModelDue,
    Paused,
    Ready,
    RetryScheduled,
    ToolRetryScheduled,
    ToolsDue,
    WaitingForCalls,
    WaitingForModel,
    WaitingForUser,
)
from app.turn.status import ResumedBy


def stop_changed(
    turn: Turn, event: e.TurnSuspended | e.RetryWasScheduled | e.TurnPaused | e.TurnResumed
) -> Turn:
    """The turn after it stopped somewhere, or went on from there."""
    """The turn after it stopped somewhere, or went on from there."""
    match event:
        case e.TurnSuspended(question=str(question)):
            return _asked(turn, question, event)
        case e.TurnSuspended():
            waits_again = event.suspension_type == "MODEL"
            return replace(
                turn,
                state=_suspended(turn, event),
                came_back_from=None if waits_again else turn.came_back_from,
            )
        case e.RetryWasScheduled(due_at=due_at):
            return _scheduled(turn, due_at)
        case e.TurnPaused():
            return replace(
                turn,
                state=_paused(turn, event),
                pause_requested=False,
                lost_to=None,
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
    lost = lost_step(turn) if event.cause in CRASHES else None
    return Paused(
        cause=event.cause,
        requested_at=event.requested_at,
        limit=event.limit,
        asked_at=asked_at(turn) if calls else None,
        calls=calls,
        text_kept=turn.ends_partial or has_lost_text(lost),
        lost=lost,
    )


def _resumed(turn: Turn, event: e.TurnResumed) -> Turn:
    """On at the cursor: what is still open is run, else the model is called.

    What the user says meanwhile takes the place of a question that was still to be asked.
    """
    is_retry = event.command_type == "RETRY"
    is_said = event.command_type in {"USER_MESSAGE", "REPLAN_WITH_MESSAGE"}
    kept = turn.counters.consecutive_retries if is_retry else 0
    # Whoever goes on before a retry is due wants it now.
    calls = turn.open_calls if is_retry else _begun_anew(turn, event.command_type)
    waits_for_model = isinstance(turn.state, WaitingForModel | RetryScheduled)
    waited_for = turn.state.record.failure.kind if isinstance(turn.state, WaitingForModel) else None
    due = ToolsDue(asked_at=asked_at(turn), calls=calls) if calls else _due(turn, event)
    return replace(
        _with_changes(turn, event),
        state=due if is_said else still_lost(turn.state, due),
        pause_requested=False,
        came_back_from=waited_for or turn.came_back_from,
        fallback=0 if waits_for_model and not is_retry else turn.fallback,
        has_compacted=turn.has_compacted and is_retry,
        waited=turn.waited + event.waited,
        questions=() if is_said else turn.questions,
        counters=replace(turn.counters, consecutive_retries=kept),
    )


def _due(turn: Turn, event: e.TurnResumed) -> ModelDue | CompactionDue:
    """The model, behind a summary where that was asked for."""
    if event.compact and isinstance(turn.state, WaitingForModel):
        return CompactionDue(record=turn.state.record, is_asked=True)
    return ModelDue()


def _with_changes(turn: Turn, event: e.TurnResumed) -> Turn:
    """What was changed stays so for the rest of the turn."""
    changed = (event.limits, event.model, event.max_output_tokens, event.keep_turns)
    if not event.compact and all(each is None for each in changed):
        return turn
    return replace(
        turn,
        limits=event.limits or turn.limits,
        model=event.model or turn.model,
        max_output_tokens=event.max_output_tokens or turn.max_output_tokens,
        keep_turns=turn.keep_turns if event.keep_turns is None else event.keep_turns,
        is_changed=True,
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
            record=event.record, requested_at=event.requested_at, text_kept=turn.ends_partial
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
