"""The transcript of the turn being driven, kept between its steps.

It is read once when the turn is taken up and grows by what each commit adds, so that a step costs
the same at the end of a long history as at its beginning.
"""

from collections.abc import Iterable, Sequence

from app.ports import HistoryMessage, TurnStore
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
        """Every message as a model request carries it, in order."""
        return [self._messages[position].body for position in sorted(self._messages)]
