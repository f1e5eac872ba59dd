"""What is asked of events in a journal, whatever they say."""

from typing import TypeAlias

from app.turn.events import (
    Event,
    ExternalToolCompleted,
    ExternalToolFailed,
    MessageAdded,
    ModelCompleted,
    ModelStopped,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolRejected,
    ToolSkipped,
)
from app.turn.status import Status
from app.turn.transcript import AssistantMessage, Message


class JournalError(RuntimeError):
    """A journal that no turn can have had."""


Interruption: TypeAlias = ToolInterrupted | ToolSkipped
"""Events that answer a call without a result of its tool; each leaves a record."""

TERMINAL_TYPES = frozenset(
    {
        "TURN_COMPLETED",
        "TURN_FAILED",
        "TURN_CANCELLED",
        Status.MAX_ITERATIONS_REACHED.value,
        Status.MAX_STEPS_REACHED.value,
        Status.BUDGET_EXCEEDED.value,
    }
)


def added_message(event: Event) -> tuple[int, Message] | None:
    """The message an event adds to the transcript, with its position."""
    match event:
        case MessageAdded(position=position, message=message):
            return position, message
        case (
            ModelCompleted(position=int(position), message=AssistantMessage() as message)
            | ModelStopped(position=int(position), message=AssistantMessage() as message)
        ):
            return position, message
        case (
            ToolCompleted(position=position, result=result)
            | ToolFailed(position=position, result=result)
            | ToolInterrupted(position=position, result=result)
            | ToolSkipped(position=position, result=result)
            | ToolRejected(position=position, result=result)
            | ExternalToolCompleted(position=position, result=result)
            | ExternalToolFailed(position=position, result=result)
        ):
            return position, result
        case _:
            return None
