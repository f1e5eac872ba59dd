"""Wake-ups between processes: NOTIFY as a hint, outside the writing statement and coalesced.

A NOTIFY inside a commit takes a lock that all commits share; on its own it is cheap. So changed
turns are collected and told to the other processes a few times a second in one message. This
process does not wait for that: it is woken at once. If the listening connection breaks, everybody
is woken when it is back, because what was said meanwhile is not known.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager

import asyncpg
import orjson
import structlog

from app.ports import StoreUnavailable, Subject
from app.store.pool import Database, open_connection
from app.store.signals import Runnable, Signal, Signals
from app.turn.ids import TurnId

_CHANNEL = "turnkeeper"
_GATHER_SECONDS = 0.02
_PROGRESS_SECONDS = 0.1
"""How long others hear nothing of mere progress: a turn may make some a hundred times a second."""
_RECONNECT_SECONDS = 1.0
_LARGEST_PAYLOAD_BYTES = 7_500  # PostgreSQL's limit is 8,000

_LOST = (
    StoreUnavailable,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

_log = structlog.get_logger(__name__)


class PostgresWakeups:
    """`ports.Wakeups` over LISTEN and NOTIFY."""

    def __init__(self, dsn: str, database: Database, *, process_id: str) -> None:
        self._dsn = dsn
        self._database = database
        self._process_id = process_id
        self._signals = Signals()
        self._changed: dict[Subject, bool] = {}
        self._something = asyncio.Event()
        self._urgent = Signal()
        self._has_tried = asyncio.Event()

    def announce(self, subject: Subject, *, runnable: bool, is_progress: bool = False) -> None:
        self._heard(subject, runnable=runnable)
        self._changed[subject] = self._changed.get(subject, False) or runnable
        self._something.set()
        if not is_progress:
            self._urgent.set()

    def watch(self, subject: Subject) -> AbstractContextManager[Signal]:
        return self._signals.watch(subject)

    @property
    def runnable(self) -> Runnable:
        return self._signals.runnable

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Listen and tell while the context is open.

        It opens when this process hears of others, so that who begins in it looks once and not
        again a moment later; or when that has failed, and is tried again and again.
        """
        async with asyncio.TaskGroup() as tasks:
            both = [tasks.create_task(self._listen()), tasks.create_task(self._tell())]
            try:
                await self._has_tried.wait()
                yield
            finally:
                for task in both:
                    task.cancel()

    async def _tell(self) -> None:
        while True:
            await self._something.wait()
            await self._urgent.wait(_PROGRESS_SECONDS)
            await asyncio.sleep(_GATHER_SECONDS)
            self._something.clear()
            changed, self._changed = self._changed, {}
            for payload in _payloads(self._process_id, changed):
                await self._notify(payload)

    async def _notify(self, payload: str) -> None:
        try:
            await self._database.execute("SELECT pg_notify($1, $2)", _CHANNEL, payload)
        except StoreUnavailable as error:
            # The others find out when they poll.
            _log.warning("notify_failed", error=type(error).__name__)

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except _LOST as error:
                _log.warning("listener_lost", error=type(error).__name__)
            self._has_tried.set()
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen_once(self) -> None:
        gone = asyncio.Event()
        connection = await open_connection(self._dsn)
        try:
            connection.add_termination_listener(lambda *_: gone.set())
            await connection.add_listener(_CHANNEL, self._on_notify)
            self._signals.everything_changed()
            self._has_tried.set()
            await gone.wait()
        finally:
            connection.terminate()

    def _on_notify(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        told = orjson.loads(payload)
        if told["from"] == self._process_id:
            return
        for subject, runnable in told["turns"]:
            self._heard(TurnId(subject), runnable=runnable)

    def _heard(self, subject: Subject, *, runnable: bool) -> None:
        self._signals.changed(subject)
        if runnable:
            self._signals.runnable.may_be(TurnId(subject))


def _payloads(process_id: str, changed: dict[Subject, bool]) -> list[str]:
    """The news in messages that fit: ids are at most 128 characters."""
    subjects = list(changed.items())
    size = max(_LARGEST_PAYLOAD_BYTES // 160, 1)
    return [
        orjson.dumps({"from": process_id, "turns": subjects[start : start + size]}).decode()
        for start in range(0, len(subjects), size)
    ]
