"""What the shell reports of a request for a summary; the part of `app.turn.inputs` about it."""

from dataclasses import dataclass

from app.turn.failures import ModelFailure, RequestRefused
from app.turn.ids import AttemptId, FailureId
from app.turn.transcript import ModelAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """The messages that a summary is to stand for."""

    first: int
    last: int
    tokens: int
    """By the estimate of `app.turn.window`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEnded:
    """The request for a summary has ended, or had nothing to ask for."""

    attempt_id: AttemptId
    replaced: Replaced | None
    """`None`: nothing was said before that a summary could stand for; nothing was sent."""
    ending: ModelAnswer | ModelFailure | RequestRefused | None
    """What came back; `None` where nothing was sent or the call broke in our own code."""
    next_attempt_id: AttemptId
    failure_id: FailureId
    """Used where somebody had asked for it, and it came to nothing."""
