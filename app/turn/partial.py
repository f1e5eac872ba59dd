"""Text of an answer that was begun and not completed: what is kept of it, and who is told (C8).

A model call may end before its answer does: the stream breaks, its worker dies, somebody pauses the
turn, the code around it has a fault. Readers have seen its text by then. It is kept as a partial
message: shown, sent back to the model with a notice behind it, and never taken for an answer. Blank
text is none, and an agent may want all of it dropped.

Reasoning is kept with it for people. Its calls are withheld, whole or not, and their names listed
(C23). What only its provider can read is not kept: a signature covers a whole answer.
"""

from collections.abc import Iterable

from app.turn import events as e
from app.turn.agent import Agent
from app.turn.failures import FailureRecord
from app.turn.ids import AttemptId
from app.turn.state import Turn
from app.turn.transcript import AssistantMessage, MessageError, StopReason

_BROKEN_OFF = "The model's answer broke off before its end."


def written(events: Iterable[e.Event], attempt_id: AttemptId) -> tuple[str, str]:
    """Text and reasoning of an attempt, as far as these events of its turn have stored them."""
    text: list[str] = []
    reasoning: list[str] = []
    for event in events:
        match event:
            case e.ModelText(attempt_id=found, text=piece) if found == attempt_id:
                text.append(piece)
            case e.ModelReasoning(attempt_id=found, text=piece) if found == attempt_id:
                reasoning.append(piece)
            case _:
                pass
    return "".join(text), "".join(reasoning)


def is_kept(text: str, agent: Agent) -> bool:
    """Whether the text of an answer that was cut off becomes a message."""
    return agent.partial_output == "keep" and bool(text.strip())


def cut_off(
    turn: Turn,
    attempt_id: AttemptId,
    agent: Agent,
    error: MessageError,
    *,
    text: str,
    reasoning: str,
    withheld: tuple[str, ...] = (),
) -> tuple[e.ModelStopped, ...]:
    """That an answer was cut off, with what is kept of it; no event where there is nothing to say.

    Args:
        turn: as it is before the event.
        attempt_id: whose answer it is.
        agent: whether it wants the text kept.
        error: why it was not completed.
        text: all of the answer that has come; its events are not made here.
        reasoning: likewise.
        withheld: names of the calls that had come.
    """
    if not is_kept(text, agent):
        return () if not withheld else (_stopped(attempt_id, withheld),)
    message = AssistantMessage(
        text=text, reasoning=reasoning, stop_reason=StopReason.INTERRUPTED, error=error
    )
    return (_stopped(attempt_id, withheld, turn.next_position, message),)


def broken_by(record: FailureRecord) -> MessageError:
    """The error of an answer that a failure of the model has broken off."""
    failure = record.failure
    return MessageError(reason=failure.type, message=_BROKEN_OFF, failure_id=record.failure_id)


def broken_for(reason: str) -> MessageError:
    """The error of an answer with which its turn has failed for this reason."""
    return MessageError(reason=reason, message=_BROKEN_OFF)


def _stopped(
    attempt_id: AttemptId,
    withheld: tuple[str, ...],
    position: int | None = None,
    message: AssistantMessage | None = None,
) -> e.ModelStopped:
    return e.ModelStopped(
        attempt_id=attempt_id,
        stop_reason=StopReason.INTERRUPTED,
        raw_stop=None,
        withheld_tools=withheld,
        position=position,
        message=message,
    )
