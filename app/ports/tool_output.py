"""What a tool says, and how it says that it has done nothing."""

from dataclasses import dataclass
from typing import Literal

from app.turn.transcript import Outcome
from app.turn.waits import ApprovalNeeded, InputNeeded


class NotDone(Exception):  # noqa: N818 - read at the place of raising: "raise NotDone"
    """Raised by a tool that has done nothing, so that nobody need fear it did half.

    The model is told so, with the reason, and the call counts as not started.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool said; an error is said to the model, not raised."""

    outcome: Literal[Outcome.COMPLETED, Outcome.ERROR, Outcome.NOT_STARTED]
    content: str
    question: str | None = None
    """What the tool asks the user; the service then says to the model what became of the call."""
    needs: ApprovalNeeded | InputNeeded | None = None
    """What the tool needs from somebody before it does anything; nothing is said then."""
