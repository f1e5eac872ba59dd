"""Wake-ups inside one process: levels, not queues, so that a slow waiter costs nothing."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Generator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from app.ports import Subject
from app.turn.ids import TurnId


class Signal:
    """`ports.Wakeup`: many settings before a wait are one."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self._event.set()

    def nudge(self) -> None:
        self._event.set()

    async def wait(self, timeout_seconds: float) -> bool:
        await _set_or_after(timeout_seconds, self._event, self.set)
        self._event.clear()
        was_set, self._is_set = self._is_set, False
        return was_set


_MOST_NAMED = 1_000


class Runnable:
    """`ports.RunnableTurns`: a look at all stands for every turn that was named."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._named: set[TurnId] = set()
        self._is_all = False

    def look(self) -> None:
        self._is_all = True
        self._event.set()

    def may_be(self, turn_id: TurnId) -> None:
        """This turn may be claimable."""
        if len(self._named) == _MOST_NAMED:  # where no worker is, nobody ever takes them
            self._named.clear()
            self._is_all = True
        if not self._is_all:
            self._named.add(turn_id)
        self._event.set()

    async def wait(self, timeout_seconds: float) -> AbstractSet[TurnId] | None:
        await _set_or_after(timeout_seconds, self._event, self.look)
        self._event.clear()
        named, self._named = self._named, set()
        is_all, self._is_all = self._is_all, False
        return None if is_all else named


async def _set_or_after(
    timeout_seconds: float, event: asyncio.Event, time_is_up: Callable[[], None]
) -> None:
    """Wait for the event, which `time_is_up` sets when it takes longer.

    A timer of its own is three calls, `asyncio.timeout` fourteen; a turn waits two dozen times.
    """
    if event.is_set():
        return
    timer = asyncio.get_running_loop().call_later(timeout_seconds, time_is_up)
    try:
        await event.wait()
    finally:
        timer.cancel()


class Signals:
    """Who waits for what, in this process."""

    def __init__(self) -> None:
        self._watchers: defaultdict[Subject, set[Signal]] = defaultdict(set)
        self.runnable = Runnable()

    @contextmanager
    def watch(self, subject: Subject) -> Generator[Signal, None, None]:
        signal = Signal()
        self._watchers[subject].add(signal)
        try:
            yield signal
        finally:
            self._watchers[subject].discard(signal)
            if not self._watchers[subject]:
                del self._watchers[subject]

    def changed(self, subject: Subject) -> None:
        for signal in self._watchers.get(subject, ()):
            signal.set()

    def everything_changed(self) -> None:
        """After hints may have been lost: everybody looks for themselves."""
        self.runnable.look()
        for watchers in self._watchers.values():
            for signal in watchers:
                signal.set()
