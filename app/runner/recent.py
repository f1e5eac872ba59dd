"""What this process has just stored, for those in it who follow a turn.

Most turns are followed in the process that drives them, so that their readers need not ask the
database for what was in memory a moment ago. It is kept for turns that somebody follows, and no
more than the last few commits of each. Whoever misses one, or follows a turn that another process
drives, finds a gap here and asks the database.

Whoever opens a turn and is answered with its events begins to follow it only when it is stored. So
a turn that has been opened here has a reader for its first second, whether one comes or not.
"""

import asyncio
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from app.ports import Commit, JournalRow
from app.turn.ids import TurnId

_MOST_KEPT = 16


class RecentCommits:
    """The last commits of the turns that are followed in this process.

    Args:
        opened_seconds: how long whoever opens a turn counts as its reader.
    """

    def __init__(self, opened_seconds: float = 1.0) -> None:
        self._opened_seconds = opened_seconds
        self._rows: dict[TurnId, list[JournalRow]] = {}
        self._readers: Counter[TurnId] = Counter()

    def opened(self, commit: Commit) -> None:
        """A turn begins with this commit: what comes next is remembered for a while at least."""
        turn_id = commit.after.identity.turn_id
        self._join(turn_id)
        asyncio.get_running_loop().call_later(self._opened_seconds, self._leave, turn_id)
        self.stored(commit)

    def stored(self, commit: Commit) -> None:
        """The commit has happened; it is remembered if somebody follows its turn."""
        turn = commit.after
        kept = self._rows.get(turn.identity.turn_id)
        if kept is None:
            return
        kept.append(JournalRow(sequence=turn.version, occurred_at=commit.at, events=commit.events))
        kept.sort(key=_sequence)  # two writers of one process may come back in either order
        del kept[:-_MOST_KEPT]

    def behind(self, turn_id: TurnId, version: int) -> Sequence[JournalRow]:
        """The rows that follow `version` without a gap; none where the next one is not here."""
        found: list[JournalRow] = []
        for row in self._rows.get(turn_id, ()):
            if row.sequence <= version:
                continue
            if row.sequence - len(row.events) > version:
                break
            found.append(row)
            version = row.sequence
        return found

    @contextmanager
    def followed(self, turn_id: TurnId) -> Generator[None, None, None]:
        """The turn's commits are remembered while the context is open."""
        self._join(turn_id)
        try:
            yield
        finally:
            self._leave(turn_id)

    def _join(self, turn_id: TurnId) -> None:
        self._readers[turn_id] += 1
        self._rows.setdefault(turn_id, [])

    def _leave(self, turn_id: TurnId) -> None:
        self._readers[turn_id] -= 1
        if not self._readers[turn_id]:
            del self._readers[turn_id], self._rows[turn_id]


def _sequence(row: JournalRow) -> int:
    return row.sequence
