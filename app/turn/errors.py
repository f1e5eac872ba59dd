"""Refusals: why a person's request does not fit the turn as it is. They change nothing.

    Rejected
    ├── ConversationBusy       the conversation's turn is at work, or in the way of another
    ├── TurnNotBlocked         nothing waits for a command
    ├── TurnTerminal           the turn has ended
    ├── WrongCommand           the turn waits, but for something else
    ├── CorrelationMismatch    the command names something that is not current
    ├── RetryNotDue            the scheduled retry's time has not come
    ├── WaitExpired            the time for the answer is over
    ├── ResultTooLarge         a result from outside is longer than its tool allows
    ├── AnswerInvalid          what was said is no answer to what the turn asks
    └── QueuedInputNotFound    the queue holds no such message

A class's docstring is its sentence in the problem document.
"""

from typing import ClassVar

from app.turn.state import Turn


class Rejected(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """The request does not fit the turn as it is."""

    code: ClassVar[str] = "rejected"

    def __init__(self, turn: Turn, detail: str) -> None:
        super().__init__(detail)
        self.turn = turn
        self.detail = detail


class ConversationBusy(Rejected):
    """The conversation has a turn that has not ended."""

    code: ClassVar[str] = "conversation_busy"


class TurnNotBlocked(Rejected):
    """The turn is not waiting for a command."""

    code: ClassVar[str] = "turn_not_blocked"


class TurnTerminal(Rejected):
    """The turn has ended and takes no more commands."""

    code: ClassVar[str] = "turn_terminal"


class WrongCommand(Rejected):
    """The turn waits for something else than this command."""

    code: ClassVar[str] = "wrong_command"


class CorrelationMismatch(Rejected):
    """The command names something that is not, or no longer, current."""

    code: ClassVar[str] = "correlation_mismatch"


class RetryNotDue(Rejected):
    """The scheduled retry is not due yet."""

    code: ClassVar[str] = "retry_not_due"


class WaitExpired(Rejected):
    """The time for this answer is over."""

    code: ClassVar[str] = "wait_expired"


class ResultTooLarge(Rejected):
    """The result is longer than its tool allows."""

    code: ClassVar[str] = "result_too_large"


class AnswerInvalid(Rejected):
    """The request says something that cannot be."""

    code: ClassVar[str] = "payload_invalid"


class QueuedInputNotFound(Rejected):
    """The queue holds no such message, or no longer."""

    code: ClassVar[str] = "queued_input_not_found"
