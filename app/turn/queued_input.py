"""A message that waits in a turn's queue."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.turn.transcript import UserMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedInput:
    """A message that came while the turn was at work, and is not in the transcript yet."""

    message: UserMessage
    mode: Literal["queue", "steer"]
    """`queue` waits for the turn's end, `steer` for its next boundary (T8, T9)."""
    queued_at: datetime
