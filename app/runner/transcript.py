"""The transcript of the turn being driven, kept between its steps.

It is read once when the turn is taken up and grows by what each commit adds, so that a step costs
the same at the end of a long history as at its beginning.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from app.ports import GO_ON, HistoryMessage, TurnStore
from app.turn.agent import LeftOut
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

    def bodies(self, leave_out: Collection[LeftOut] = ()) -> Sequence[str]:
        """Every message that a model request carries, in order; the last is to be answered.

        Where the history does not end with one, a word is put behind it that is not kept (providers
        refuse such a request). An answer that paused is for its own provider to go on with; every
        other one gets that word from its wire.
        """
        said = [
            self._messages[position]
            for position in sorted(self._messages)
            if self._messages[position].role not in leave_out
        ]
        kept = [said[place] for place in heard([message.role for message in said])]
        is_to_be_answered = bool(kept) and kept[-1].role not in _ANSWERS
        return [m.body for m in kept] + ([] if is_to_be_answered else [GO_ON])

    def answer_from(self, first: int | None) -> str:
        """The text of all answers from that place on; `None`: of none.

        Partial ones are no answers.
        """
        if first is None:
            return ""
        said = [self._messages[place] for place in sorted(self._messages) if place >= first]
        texts = [json.loads(message.body)["content"] for message in said if _is_answer(message)]
        return "".join(text or "" for text in texts)


def _is_answer(message: HistoryMessage) -> bool:
    return message.role in {*_ANSWERS, "paused"} - {"partial"}


_ANSWERS = frozenset({"assistant", "refused", "partial"})
"""Roles of messages behind which a provider waits for somebody else to speak."""
