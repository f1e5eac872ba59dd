"""The journals of turns that are followed in this process, looked at once for all their readers.

Three things tell a reader that there may be news: a hint of this process, a hint of another one,
and the poll, which is one statement for everything that is followed, however many follow it. What
the news are is read once as well: readers who ask for the same place share one look.

The case that surprised us: whoever joins a look that is under way may have been woken by something
that this look does not see any more. So an empty answer to a joined look is no answer, and the
reader asks once more.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import structlog

from app.ports import FeedStore, JournalReader, JournalRow, StoreUnavailable, Wakeup, Wakeups
from app.runner.live_text import LiveText
from app.runner.recent import RecentCommits
from app.runner.tasks import cancel_and_wait
from app.turn.ids import ConversationId, TenantId, TurnId, conversation_key

POLL_SECONDS = 1.0
"""What the loss of every hint costs."""
ROWS_AT_ONCE = 16
"""A reader that is behind has no more than so many commits in memory."""

ConversationAt: TypeAlias = tuple[TenantId, ConversationId]
_Key = TypeVar("_Key", TurnId, ConversationAt)

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Subject:
    """What is known of a turn or a conversation that somebody follows."""

    polled: int | None = None
    """The version, or the number of the newest turn, at the last poll."""
    is_gone: bool = False
    wakeups: set[Wakeup] = field(default_factory=set[Wakeup])

    def found(self, value: int | None) -> None:
        """What a poll has found; `None`: it is not there."""
        if value == self.polled and value is not None:
            return
        self.polled, self.is_gone = value, value is None
        self.wake()

    def wake(self) -> None:
        for wakeup in self.wakeups:
            wakeup.nudge()


@dataclass(slots=True, kw_only=True)
class Journals:
    """What readers of this process share."""

    turns: JournalReader
    feeds: FeedStore
    wakeups: Wakeups
    recent: RecentCommits
    live_text: LiveText
    _turns: dict[TurnId, _Subject] = field(default_factory=dict[TurnId, _Subject])
    _conversations: dict[ConversationAt, _Subject] = field(
        default_factory=dict[ConversationAt, _Subject]
    )
    _looks: dict[tuple[TurnId, int], asyncio.Task[Sequence[JournalRow]]] = field(
        default_factory=dict[tuple[TurnId, int], asyncio.Task[Sequence[JournalRow]]]
    )

    @property
    def is_idle(self) -> bool:
        """Whether nobody follows anything here."""
        return not self._turns and not self._conversations

    def has_several_readers(self, turn_id: TurnId) -> bool:
        """Whether what one reader of the turn is sent, another may be sent as well."""
        subject = self._turns.get(turn_id)
        return subject is not None and len(subject.wakeups) > 1

    @contextmanager
    def followed(self, turn_id: TurnId) -> Generator["Following", None, None]:
        """The turn is looked after while the context is open."""
        with ExitStack() as stack:
            wakeup = stack.enter_context(self.wakeups.watch(turn_id))
            stack.enter_context(self.live_text.read(turn_id, wakeup))
            stack.enter_context(self.recent.followed(turn_id))
            subject = stack.enter_context(self._looked_after(self._turns, turn_id, wakeup))
            yield Following(wakeup, subject)

    @contextmanager
    def followed_conversation(
        self, tenant_id: TenantId, conversation_id: ConversationId
    ) -> Generator["Following", None, None]:
        """It is heard of turns that begin there while the context is open."""
        key = tenant_id, conversation_id
        with (
            self.wakeups.watch(conversation_key(*key)) as wakeup,
            self._looked_after(self._conversations, key, wakeup) as subject,
        ):
            yield Following(wakeup, subject)

    @contextmanager
    def _looked_after(
        self, subjects: dict[_Key, _Subject], key: _Key, wakeup: Wakeup
    ) -> Generator[_Subject, None, None]:
        subject = subjects.setdefault(key, _Subject())
        subject.wakeups.add(wakeup)
        try:
            yield subject
        finally:
            subject.wakeups.discard(wakeup)
            if not subject.wakeups:
                del subjects[key]

    async def behind(
        self, turn_id: TurnId, version: int, *, known: int = 0
    ) -> Sequence[JournalRow]:
        """Rows behind a version, oldest first: what this process has just stored, or a look.

        Where both have news, another process's are found at the next wake-up or poll. But whoever
        comes later than such a wake-up has not heard it: what this process has stored, or what a
        look finds that was under way, is enough only up to the version that is `known` to be there,
        to its reader or from the last poll.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        there = max(known, self._polled(turn_id))
        at_hand = self.recent.behind(turn_id, version)
        if at_hand and at_hand[-1].sequence >= there:
            return at_hand
        under_way = self._looks.get((turn_id, version))
        if under_way is not None:
            rows = await asyncio.shield(under_way)
            if rows and (len(rows) == ROWS_AT_ONCE or rows[-1].sequence >= there):
                return rows
        return await asyncio.shield(self._look(turn_id, version))

    def _polled(self, turn_id: TurnId) -> int:
        subject = self._turns.get(turn_id)
        return 0 if subject is None else subject.polled or 0

    def _look(self, turn_id: TurnId, version: int) -> asyncio.Task[Sequence[JournalRow]]:
        key = turn_id, version
        look = self._looks.get(key)
        if look is None:
            reading = self.turns.journal(turn_id, after=version, limit=ROWS_AT_ONCE)
            look = self._looks[key] = asyncio.ensure_future(reading)
            look.add_done_callback(lambda done: self._looked(key, done))
        return look

    def _looked(self, key: tuple[TurnId, int], done: asyncio.Task[Sequence[JournalRow]]) -> None:
        del self._looks[key]
        if not done.cancelled():
            done.exception()  # those who still want to know have it

    @asynccontextmanager
    async def running(self, stopping: asyncio.Event) -> AsyncGenerator[None, None]:
        """Poll while the context is open; once `stopping` is set, everybody is woken to see it."""
        tasks = [
            asyncio.create_task(self._poll_for_ever(), name="poll of what is followed"),
            asyncio.create_task(self._wake_all_at(stopping), name="end of what is followed"),
        ]
        try:
            yield
        finally:
            await cancel_and_wait([*tasks, *self._looks.values()])

    async def _wake_all_at(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        for subject in (*self._turns.values(), *self._conversations.values()):
            subject.wake()

    async def _poll_for_ever(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                await self.poll()
            except StoreUnavailable:
                _log.warning("poll_failed")

    async def poll(self) -> None:
        """Look once, for everybody, whether what is followed has changed.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        if turns := dict(self._turns):
            versions = await self.feeds.versions(list(turns))
            for turn_id, subject in turns.items():
                subject.found(versions.get(turn_id))
        if conversations := dict(self._conversations):
            newest = await self.feeds.newest(list(conversations))
            for key, subject in conversations.items():
                subject.found(newest.get(key))


@dataclass(frozen=True, slots=True)
class Following:
    """One reader's part in what is looked after."""

    _wakeup: Wakeup
    _subject: _Subject

    @property
    def is_gone(self) -> bool:
        """Whether it was deleted."""
        return self._subject.is_gone

    async def change_from(self, known: int, *, within_seconds: float) -> bool:
        """Whether there may be something stored beyond `known`, a version or a turn's number.

        `False` when there was nothing but a piece of live text, or a poll without news for it.
        """
        was_hinted = await self._wakeup.wait(within_seconds)
        polled = self._subject.polled
        return was_hinted or self.is_gone or (polled is not None and polled > known)
