"""The transcript of the turn being driven, kept between its steps.

It is read once when the turn is taken up and grows by what each commit adds, so that a step costs
the same at the end of a long history as at its beginning. Where its agent's window cuts it does not
change with what the turn itself says: that is found out once as well.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from app.ports import GO_ON, HistoryMessage, TurnStore
from app.turn.agent import HistoryWindow, LeftOut
from app.turn.ids import TurnId
from app.turn.inputs import Replaced
from app.turn.requestable import heard
from app.turn.state import Turn
from app.turn.summary import SUMMARY
from app.turn.window import Said, estimated_tokens, first_sent

ALL_OF_IT = HistoryWindow()


class Transcript:
    """Messages by their place; results of a round may arrive in any order."""

    def __init__(self, own: TurnId, messages: Iterable[HistoryMessage]) -> None:
        self._own = own
        self._messages: dict[int, HistoryMessage] = {}
        self._cuts: dict[HistoryWindow, int] = {}
        self.call_ids: set[str] = set()
        self.add(messages)

    @classmethod
    async def load(
        cls, store: TurnStore, turn: Turn, *, known: Sequence[HistoryMessage] | None = None
    ) -> "Transcript":
        """Everything that has been said in the turn's conversation; read, where it is not known."""
        said = await store.history(turn) if known is None else known
        return cls(turn.identity.turn_id, said)

    def add(self, messages: Iterable[HistoryMessage]) -> None:
        """Put messages in their places."""
        for message in messages:
            if message.call_id is not None:
                self.call_ids.add(message.call_id)
            if message.role == SUMMARY:
                self._forget(message.position)
            if not message.is_summed_up:
                self._messages[message.position] = message

    def _forget(self, last: int) -> None:
        """A summary stands for everything up to this place."""
        for place in [place for place in self._messages if place <= last]:
            del self._messages[place]
        self._cuts.clear()

    def bodies(
        self, leave_out: Collection[LeftOut] = (), window: HistoryWindow = ALL_OF_IT
    ) -> Sequence[str]:
        """Every message that a model request carries, in order; the last is to be answered.

        Where the history does not end with one, a word is put behind it that is not kept (providers
        refuse such a request). An answer that paused is for its own provider to go on with; every
        other one gets that word from its wire.
        """
        said = [message for message in self._sent(window) if message.role not in leave_out]
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

    def to_sum_up(self, window: HistoryWindow, *, keep_turns: int) -> Sequence[HistoryMessage]:
        """What of a request a summary could stand for, in order: what was said before the turn.

        Nothing, where that is a summary already. The last `keep_turns` of it are left alone.
        """
        sent = self._sent(window)
        end = self._cut(HistoryWindow(turns=keep_turns))
        found = [message for message in sent if message.position < end]
        return found if any(message.role != SUMMARY for message in found) else ()

    def replaced(self, messages: Sequence[HistoryMessage]) -> Replaced:
        """The places that a summary of these messages stands for: all up to the last of them."""
        return Replaced(
            first=0,
            last=messages[-1].position,
            tokens=sum(estimated_tokens(message.body) for message in messages),
        )

    def _sent(self, window: HistoryWindow) -> list[HistoryMessage]:
        """What the window leaves; a summary stays in front of it."""
        begin = self._cut(window)
        return [
            self._messages[place]
            for place in sorted(self._messages)
            if place >= begin or self._messages[place].role == SUMMARY
        ]

    def _cut(self, window: HistoryWindow) -> int:
        """The place of the first message that the window leaves, a summary aside."""
        if window == ALL_OF_IT:
            return 0
        if window not in self._cuts:
            said = [self._messages[place] for place in sorted(self._messages)]
            behind = [message for message in said if message.role != SUMMARY]
            first = first_sent([_said(message) for message in behind], self._own, window)
            self._cuts[window] = behind[first].position if first < len(behind) else 0
        return self._cuts[window]


def _said(message: HistoryMessage) -> Said:
    return Said(role=message.role, turn_id=message.turn_id, tokens=estimated_tokens(message.body))


def _is_answer(message: HistoryMessage) -> bool:
    return message.role in {*_ANSWERS, "paused"} - {"partial"}


_ANSWERS = frozenset({"assistant", "refused", "partial"})
"""Roles of messages behind which a provider waits for somebody else to speak."""
