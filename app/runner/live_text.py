"""Answers that are being written in this process, for readers who want each word at once.

Text is stored in batches; between two of them it is only here. A reader is given a level, the whole
of the open answer so far, and takes what it does not have. So there is no queue per reader: a slow
one takes larger pieces, and memory is one answer per open model call, whoever reads.
"""

from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from app.ports import Wakeup
from app.turn.ids import AttemptId, TurnId


@dataclass(slots=True)
class OpenAnswer:
    """An answer as far as it has come."""

    attempt_id: AttemptId
    started_version: int
    """The turn's version once the attempt's begin was stored."""
    text: str = ""
    reasoning: str = ""
    asked: str | None = None
    """A mark of the model that is asked, and of where; the same for the same."""


class LiveText:
    """The open answers of this process, and who wants to know of them."""

    def __init__(self) -> None:
        self._answers: dict[TurnId, OpenAnswer] = {}
        self._readers: defaultdict[TurnId, set[Wakeup]] = defaultdict(set)

    def answer(self, turn_id: TurnId) -> OpenAnswer | None:
        """The turn's open answer, if this process is writing one."""
        return self._answers.get(turn_id)

    @contextmanager
    def opened(self, turn_id: TurnId, answer: OpenAnswer) -> Generator[None, None, None]:
        """The answer can be seen while the context is open."""
        self._answers[turn_id] = answer
        try:
            yield
        finally:
            if self._answers.get(turn_id) is answer:
                del self._answers[turn_id]

    def grown(self, turn_id: TurnId) -> None:
        """Wake the readers of this turn; nothing is stored yet."""
        for wakeup in self._readers.get(turn_id, ()):
            wakeup.nudge()

    @contextmanager
    def read(self, turn_id: TurnId, wakeup: Wakeup) -> Generator[None, None, None]:
        """Nudge `wakeup` whenever the turn's answer grows, while the context is open."""
        self._readers[turn_id].add(wakeup)
        try:
            yield
        finally:
            self._readers[turn_id].discard(wakeup)
            if not self._readers[turn_id]:
                del self._readers[turn_id]
