"""What a user's message does to its conversation, told from the events it brings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.turn import events as e
from app.turn.state import Turn
from app.turn.status import Status
from app.turn.transcript import ToolResult

Effect: TypeAlias = Literal["OPEN", "ANSWER", "QUEUE", "STEER", "REPLAN"]
"""`OPEN`: a turn is opened. `ANSWER`: it is what the turn has asked for. `QUEUE`, `STEER`: it is
put aside until the turn has ended, or until its next boundary. `REPLAN`: the turn goes on with it,
and every open call is closed."""

_BY_MODE: Mapping[Literal["queue", "steer"], Effect] = {"queue": "QUEUE", "steer": "STEER"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What a message has brought, or would bring."""

    effect: Effect
    closes: tuple[ToolResult, ...] = ()
    """Results of calls that are closed without a result of their tool, in declared order."""


def brought(turn: Turn | None, events: Iterable[e.Event]) -> Brought:
    """What `events` mean, decided for a message when the active turn was `turn`.

    Raises:
        ValueError: they are not what a message brings.
    """
    events = tuple(events)
    closes = closed_by(events)
    for event in events:
        match event:
            case e.TurnStarted():
                return Brought(effect="OPEN", closes=closes)
            case e.TurnResumed(command_type="REPLAN_WITH_MESSAGE"):
                return Brought(effect="REPLAN", closes=closes)
            case e.TurnResumed():
                return Brought(effect=_going_on(turn, closes), closes=closes)
            case e.InputQueued(queued=queued):
                return Brought(effect=_BY_MODE[queued.mode])
            case _:
                pass
    message = f"no message brings {[event.type for event in events]}"
    raise ValueError(message)


def closed_by(events: Iterable[e.Event]) -> tuple[ToolResult, ...]:
    """Results of calls that the events close without a result of their tool, in declared order."""
    return tuple(event.result for event in events if isinstance(event, e.ToolInterrupted))


def _going_on(turn: Turn | None, closes: tuple[ToolResult, ...]) -> Effect:
    """A question is answered by a message that closes nothing (T75, T76); any other is a replan."""
    was_asked = turn is not None and turn.status is Status.WAITING_FOR_USER
    return "ANSWER" if was_asked and not closes else "REPLAN"
