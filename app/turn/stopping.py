"""Why a turn does not go on, or was interrupted last, in one word."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from app.turn.state import Turn
from app.turn.states import (
    Cancelled,
    Failed,
    LimitReached,
    Paused,
    RetryScheduled,
    WaitingForModel,
)
from app.turn.status import PauseCause

StopCause: TypeAlias = Literal[
    "crash", "shutdown", "crash_loop", "pause", "cancel", "model_failure", "limit", "failure"
]
"""`crash`: its worker died. `shutdown`: its worker stopped in order, in the middle of a step.
`crash_loop`: workers died of it one after the other. `failure`: neither a model nor a limit."""

_PAUSES: Mapping[PauseCause, StopCause] = {
    PauseCause.PERSON: "pause",
    PauseCause.LIMIT: "limit",
    PauseCause.CRASH: "crash",
    PauseCause.CRASH_LOOP: "crash_loop",
}
_OF_THE_MODEL = frozenset({"model_failed", "request_refused", "output_invalid"})


def stopped_by(turn: Turn) -> StopCause | None:
    """`None` for a turn that goes on, waits for somebody, or is done.

    A turn at work names what its last step was lost to, until a step has ended.
    """
    match turn.state:
        case Paused(cause=cause):
            return _PAUSES[cause]
        case Cancelled():
            return "cancel"
        case WaitingForModel() | RetryScheduled():
            return "model_failure"
        case Failed(reason=reason):
            return "model_failure" if reason in _OF_THE_MODEL else "failure"
        case LimitReached():
            return "limit"
        case _:
            return turn.lost_to
