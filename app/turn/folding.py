"""Which stored pieces of text an answer in the transcript makes superfluous.

Text is stored in pieces while a model writes, and once more as the message that it became. When the
turn has ended the pieces are only of use to readers who come later, and those can be given the
message in their place. That is so for pieces that stand right in front of the commit in which the
answer is complete, if all pieces of its attempt together are the answer, letter by letter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.turn.events import Event, ModelCompleted, ModelReasoning, ModelStarted, ModelText
from app.turn.transcript import AssistantMessage


def superfluous(journal: Sequence[tuple[int, Sequence[Event]]]) -> list[int]:
    """The sequences of those rows of a journal, given by their last sequence, that may go."""
    found: list[int] = []
    attempt = _Attempt()
    for sequence, events in journal:
        if events and all(isinstance(event, ModelText | ModelReasoning) for event in events):
            attempt = replace(attempt, pieces=(*attempt.pieces, sequence))
        elif not any(isinstance(event, ModelCompleted) for event in events):
            attempt = replace(attempt, pieces=())  # what came between must be given in its place
        for event in events:
            match event:
                case ModelStarted():
                    attempt = _Attempt()
                case ModelCompleted(message=message):
                    found += attempt.pieces if attempt.is_in(message) else ()
                    attempt = _Attempt()
                case _:
                    attempt = attempt.with_what(event)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """What a model has written so far, and the rows of the journal that hold nothing else."""

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    pieces: tuple[int, ...] = ()

    def with_what(self, event: Event) -> "_Attempt":
        match event:
            case ModelText(text=text):
                return replace(self, text=(*self.text, text))
            case ModelReasoning(text=text):
                return replace(self, reasoning=(*self.reasoning, text))
            case _:
                return self

    def is_in(self, message: AssistantMessage | None) -> bool:
        """Whether the message is all that was written, and nothing else."""
        return message is not None and (message.text, message.reasoning) == (
            "".join(self.text),
            "".join(self.reasoning),
        )
