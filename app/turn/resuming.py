"""How a turn that waits goes on, and how a command is refused that is for another state."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.turn import events as e
from app.turn.agent import Agent
from app.turn.begin_tools import has_due
from app.turn.changes import Changes, is_fitting
from app.turn.errors import AnswerInvalid, Rejected, TurnNotBlocked, TurnTerminal, WrongCommand
from app.turn.evolve import advance
from app.turn.ids import CallId
from app.turn.state import Turn
from app.turn.states import Blocked, ToolRetryScheduled, WaitingForCalls
from app.turn.status import ResumedBy, Status


def resumed(
    turn: Turn, command: ResumedBy, *, at: datetime, correlation_id: str | None = None
) -> e.TurnResumed:
    """A blocked turn goes on; how long it was blocked is part of the fact."""
    blocked = turn.state
    if not isinstance(blocked, Blocked):
        raise TurnNotBlocked(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    waited = max(at - blocked.requested_at, timedelta(0))
    return e.TurnResumed(command_type=command, waited=waited, correlation_id=correlation_id)


def resumed_if_due(
    turn: Turn,
    events: tuple[e.Event, ...],
    command: ResumedBy,
    correlation_id: str,
    *,
    at: datetime,
    agent: Agent | None,
) -> tuple[e.Event, ...]:
    """`events`, and that the turn goes on where they leave it something to do.

    One that is at work, paused, or waits for something else stays as it is (C28).
    """
    if not isinstance(turn.state, WaitingForCalls | ToolRetryScheduled):
        return events
    if not has_due(advance(turn, events), agent, at=at):
        return events
    return (*events, resumed(turn, command, at=at, correlation_id=correlation_id))


def changed(turn: Turn, going_on: e.TurnResumed, changes: Changes) -> e.TurnResumed:
    """`going_on` with these changes (T60, C15 to C17).

    Raises:
        AnswerInvalid: one of them cannot help where the turn stands.
    """
    for name in changes.names:
        if not is_fitting(turn, name):
            raise AnswerInvalid(turn, f"changes.{name}: it {_why_not(turn)}")
    return replace(
        going_on,
        limits=changes.limits,
        model=changes.model,
        max_output_tokens=changes.max_output_tokens,
        keep_turns=changes.keep_turns,
        compact=changes.compact,
    )


def _why_not(turn: Turn) -> str:
    failure = turn.current_failure
    if failure is None:
        return f"changes nothing for a turn that is {turn.status}"
    phase = failure.failure.token_limit_phase
    kind = failure.failure.type if phase is None else f"{failure.failure.type} ({phase})"
    return f"does not help with {kind}; leave it out"


def does_not_fit(turn: Turn, command: str) -> Rejected:
    """The refusal of a command that is for another state than the turn's."""
    if turn.is_terminal:
        return TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    if turn.status in {Status.READY, Status.RUNNING}:
        return TurnNotBlocked(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    return WrongCommand(turn, f"a turn that is {turn.status} takes no {command}")


def named(call_ids: Sequence[CallId]) -> str:
    """Calls as a refusal names them."""
    return "call " + ", ".join(repr(call_id) for call_id in call_ids)
