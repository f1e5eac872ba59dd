"""Readers in a process of their own, who hear no hint, and whose looks are counted."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from app.ports import FeedStore, JournalReader, JournalRow, StoredTurn, StoreUnavailable, Subject
from app.runner.live_text import LiveText
from app.runner.recent import RecentCommits
from app.services.deps import Services
from app.services.follow import Bounds, Permit, follow
from app.services.journals import Journals
from app.services.reading import Cursor, Followed
from app.store.signals import Runnable, Signal, Signals
from app.turn.ids import ConversationId, TenantId, TurnId
from tests.support.polling import eventually


@dataclass(slots=True)
class Hints:
    """Wake-ups that a test gives, or keeps back."""

    signals: Signals = field(default_factory=Signals)

    def announce(self, subject: Subject, *, runnable: bool, is_progress: bool = False) -> None:
        del runnable, is_progress
        self.signals.changed(subject)

    def watch(self, subject: Subject) -> AbstractContextManager[Signal]:
        return self.signals.watch(subject)

    @property
    def runnable(self) -> Runnable:
        return self.signals.runnable


@dataclass(slots=True)
class Looks:
    """A database's statements for readers, as they are counted, and refused if it is away."""

    turns: JournalReader
    feeds: FeedStore
    journal_looks: int = 0
    polls: int = 0
    is_away: bool = False

    async def journal(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[JournalRow]:
        self.journal_looks += 1
        self._require_there()
        return await self.turns.journal(turn_id, after=after, limit=limit)

    async def versions(self, turn_ids: Sequence[TurnId]) -> Mapping[TurnId, int]:
        self.polls += 1
        self._require_there()
        return await self.feeds.versions(turn_ids)

    async def turn_from(
        self, tenant_id: TenantId, conversation_id: ConversationId, number: int
    ) -> StoredTurn | None:
        return await self.feeds.turn_from(tenant_id, conversation_id, number)

    async def newest(
        self, conversations: Sequence[tuple[TenantId, ConversationId]]
    ) -> Mapping[tuple[TenantId, ConversationId], int]:
        self.polls += 1
        return await self.feeds.newest(conversations)

    async def pruned_through(self, turn_id: TurnId) -> int:
        return await self.feeds.pruned_through(turn_id)

    def _require_there(self) -> None:
        if self.is_away:
            raise StoreUnavailable


@dataclass(slots=True, kw_only=True)
class Process:
    """What readers of one process share."""

    services: Services
    looks: Looks
    hints: Hints
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def beside(cls, services: Services) -> "Process":
        """Another process over the same database; it neither polls nor listens by itself."""
        hints, looks = Hints(), Looks(services.turns, services.feeds)
        recent, live_text = RecentCommits(), LiveText()
        journals = Journals(
            turns=looks, feeds=looks, wakeups=hints, recent=recent, live_text=live_text
        )
        apart = replace(
            services, journals=journals, feeds=looks, recent=recent, live_text=live_text
        )
        return cls(services=apart, looks=looks, hints=hints)

    @asynccontextmanager
    async def readers(
        self, stored: StoredTurn, count: int, *, permit: Permit | None = None
    ) -> AsyncGenerator[list["Follower"]]:
        """Readers who have the turn up to now, until the block ends."""
        cursor = Cursor(version=stored.turn.version)
        found = [Follower() for _ in range(count)]
        bounds = Bounds(stopping=self.stopping, permit=permit or Permit(is_still_given=_always))
        async with asyncio.TaskGroup() as tasks:
            reading = [
                tasks.create_task(one.read(self.services, stored, cursor, bounds)) for one in found
            ]
            await eventually(lambda: _all_wait(found))
            try:
                yield found
            finally:
                for task in reading:
                    task.cancel()


@dataclass(slots=True)
class Follower:
    """A reader and what it has been given."""

    received: list[Followed] = field(default_factory=list[Followed])
    is_reading: bool = False
    has_ended: bool = False

    async def read(
        self, services: Services, stored: StoredTurn, cursor: Cursor, bounds: Bounds
    ) -> None:
        self.is_reading = True
        async with aclosing(follow(services, stored, cursor, bounds)) as feed:
            async for news in feed:
                self.received += news
        self.has_ended = True

    @property
    def versions(self) -> list[int]:
        return [followed.cursor.version for followed in self.received]


async def _always() -> bool:
    return True


async def _all_wait(readers: list[Follower]) -> bool:
    return all(reader.is_reading for reader in readers)
