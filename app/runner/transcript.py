"""The transcript of the turn being driven, kept between its steps.

It is read once when the turn is taken up and grows by what each commit adds, so that a step costs
the same at the end of a long history as at its beginning.
"""

from collections.abc import Iterable, Sequence

from app.ports import HistoryMessage, TurnStore
from app.turn.requestable import heard
from app.turn.state import Turn


class Transcript:
    """Messages by their place; results of a round may arrive in any order."""

    def __init__(self, messages: Iterable[HistoryMessage]) -> None:
        self._messages: dict[int, HistoryMessage] = {}
        self.call_ids: set[str] = set()
        self.add(messages)

    @classmethod
    async def load(cls, store: TurnStore, turn: Turn) -> "Transcript":
        """Everything that has been said in the turn's conversation."""
        return cls(await store.history(turn))

    def add(self, messages: Iterable[HistoryMessage]) -> None:
        """Put messages in their places."""
        for message in messages:
            self._messages[message.position] = message
            if message.call_id is not None:
                self.call_ids.add(message.call_id)

    def bodies(self) -> Sequence[str]:
        """Every message that a model request carries, in order; the last is to be answered.

        Where the history does not end with one, an answer that paused say, a word is put behind it
        that is not kept (providers refuse such a request).
        """
        said = [self._messages[position] for position in sorted(self._messages)]
        kept = [said[place] for place in heard([message.role for message in said])]
        is_to_be_answered = bool(kept) and kept[-1].role != "assistant"
        return [m.body for m in kept] + ([] if is_to_be_answered else [_GO_ON])


_GO_ON = '{"role":"user","content":"Go on."}'
