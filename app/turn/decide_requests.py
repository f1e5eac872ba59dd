"""Rules for what people ask of a turn: which request fits which state (turn semantics, 2.3).

All checks come before any event, so a refused request leaves the turn as it was.
"""

from datetime import datetime
from typing import Literal

from app.turn import events as e
from app.turn import inputs as i
from app.turn.errors import (
    ConversationBusy,
    CorrelationMismatch,
    Rejected,
    RetryNotDue,
    TurnNotBlocked,
    TurnTerminal,
    WrongCommand,
)
from app.turn.state import (
    BLOCKED,
    Cancelled,
    Ready,
    RetryScheduled,
    Status,
    Turn,
    WaitingForModel,
)
from app.turn.steps import cancelled


def message_posted(turn: Turn, given: i.PostMessage) -> tuple[e.Event, ...]:
    """A message goes on with a turn that waits (T62, T68); one at work is left alone (T7)."""
    if turn.is_terminal:
        raise TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    if turn.status not in BLOCKED:
        detail = (
            f"turn {turn.identity.turn_id!r} of this conversation is {turn.status}; "
            "send the message again when it has ended or waits"
        )
        raise ConversationBusy(turn, detail)
    return (
        e.MessageAdded(position=turn.next_position, message=given.message),
        e.TurnResumed(command_type="USER_MESSAGE", correlation_id=given.message.message_id),
    )


def model_retried(turn: Turn, given: i.RetryModel) -> tuple[e.Event, ...]:
    """Only the failure that the turn waits for now can be retried (T60, T61)."""
    state = turn.state
    if not isinstance(state, WaitingForModel):
        raise _does_not_fit(turn, "RETRY_MODEL")
    if given.failure_id != state.record.failure_id:
        detail = (
            f"turn {turn.identity.turn_id!r} waits for failure {state.record.failure_id!r}, "
            f"not {given.failure_id!r}; reload and retry with that one"
        )
        raise CorrelationMismatch(turn, detail)
    return (e.TurnResumed(command_type="RETRY_MODEL", correlation_id=given.failure_id),)


def scheduled_retry_taken(
    turn: Turn, command: Literal["RETRY", "CONTINUE"], *, at: datetime
) -> tuple[e.Event, ...]:
    """`RETRY` takes a retry that is due, `CONTINUE` takes it now (T64 to T66)."""
    state = turn.state
    if not isinstance(state, RetryScheduled):
        raise _does_not_fit(turn, command)
    if command == "RETRY" and at < state.due_at:
        detail = f"the retry is due at {state.due_at.isoformat()}; CONTINUE takes it now"
        raise RetryNotDue(turn, detail)
    return (e.TurnResumed(command_type=command),)


def cancel_asked(turn: Turn) -> tuple[e.Event, ...]:
    """At once where nothing is in flight (T54a, T92); else a flag that is never cleared (T54)."""
    if isinstance(turn.state, Cancelled):
        return ()
    if turn.is_terminal:
        raise TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status} already")
    if turn.status in BLOCKED or isinstance(turn.state, Ready):
        return cancelled(turn)
    return () if turn.cancel_requested else (e.CancellationRequested(),)


def _does_not_fit(turn: Turn, command: str) -> Rejected:
    if turn.is_terminal:
        return TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    if turn.status in {Status.READY, Status.RUNNING}:
        return TurnNotBlocked(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    return WrongCommand(turn, f"a turn that is {turn.status} takes no {command}")
