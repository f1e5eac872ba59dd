"""Records of calls that were interrupted."""

from datetime import datetime

from app.routers.wire import Output
from app.turn.status import SuspensionType
from app.turn.transcript import InterruptionReason, Outcome


class InterruptionOutput(Output):
    """A call that was answered without a result of its tool."""

    position: int
    """Where the answer stands in the transcript."""
    call_id: str
    tool_name: str
    outcome: Outcome
    reason: InterruptionReason | None
    suspension_type: SuspensionType | None
    """What the turn waited for just then; null when it was at work or paused."""
    source_message_id: str | None
    """The message that the call was given up for."""
    interrupted_at: datetime


class InterruptionPage(Output):
    items: list[InterruptionOutput]
    next_cursor: str | None
