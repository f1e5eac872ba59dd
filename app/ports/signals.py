"""Time, ids and wake-ups."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, TypeAlias

from app.turn.ids import ConversationKey, TurnId

Subject: TypeAlias = TurnId | ConversationKey
"""What changes: a turn, or a conversation when a turn of it begins."""

Clock: TypeAlias = Callable[[], datetime]
"""Now, aware and in UTC, by the database's clock."""


NewId: TypeAlias = Callable[[str], str]
"""A fresh opaque id with the given prefix, such as `turn` or `fail`."""


class Wakeups(Protocol):
    """Hints that something changed. Losing one costs a poll interval, never a turn."""

    def announce(self, subject: Subject, *, runnable: bool, is_progress: bool = False) -> None:
        """Wake this process at once and the others soon, or a little later for mere progress.

        Progress is what a worker stores in the midst of a turn: only readers want to know of it.
        """
        ...

    def watch(self, subject: Subject) -> AbstractContextManager["Wakeup"]:
        """A wake-up that is set whenever the subject changes, while the context is open."""
        ...

    @property
    def runnable(self) -> "RunnableTurns":
        """What may be claimable, as far as this process is told."""
        ...


class RunnableTurns(Protocol):
    """Turns that may be claimable: what has been told since the last wait, and not a queue."""

    def look(self) -> None:
        """Others may be due of which nobody tells: the next wait ends with `None`."""
        ...

    async def wait(self, timeout_seconds: float) -> AbstractSet[TurnId] | None:
        """Until something is told or time is over: those turns, or `None`: look at all."""
        ...


class Wakeup(Protocol):
    """A level, not a queue: many changes before a wait are one."""

    def set(self) -> None:
        """Something stored may have changed: whoever waits goes on, or else the next wait does."""
        ...

    def nudge(self) -> None:
        """As `set`, though nothing that is stored has changed."""
        ...

    async def wait(self, timeout_seconds: float) -> bool:
        """Until set, nudged or timed out; clears it. `False` when there was nothing but nudges."""
        ...
