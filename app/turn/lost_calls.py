"""What the shell finds out about calls that were begun and whose end nobody knows.

Like a judgement (`app.turn.waits`) it takes the agent's own code: a tool may offer a probe, which
says whether a call has taken effect. What it does not say for certain is not known.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.turn.ids import CallId


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDone:
    """The call has taken effect, and this is what came of it."""

    content: str
    """As the model reads it."""


Finding: TypeAlias = FoundDone | Literal["not_done", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedInto:
    call_id: CallId
    arguments: str
    """A JSON object as text, exactly as stored: what a person sees who is asked."""
    finding: Finding | None = None
    """`None`: its tool has no probe, or there was no time for it."""
