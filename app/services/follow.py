"""Following: replay and live are one loop, so there is no seam to lose an event in.

    read what is stored behind the cursor; hand it on; hand on what the open answer has beyond it;
    wait until something changes; again.

While only the open answer grows nothing new is stored, so nothing is read: a streamed token costs
no statement. What is read is read once for all readers in this process (`app.services.journals`),
and nothing is held between two reads: no connection, no transaction, and no queue. A reader that
takes its events slowly is read for slowly; it never has more in memory than one look's rows.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import structlog

from app.ports import StoredTurn, StoreUnavailable
from app.services.deps import Services
from app.services.journals import ROWS_AT_ONCE, Following
from app.services.reading import Cursor, Followed, Reading
from app.turn.events import TurnPaused, TurnSuspended
from app.turn.ids import ConversationId, TenantId, TurnId
from app.turn.journal import TERMINAL_TYPES

_CHECK_SECONDS = 60.0
_AGAIN_SECONDS = 1.0

_log = structlog.get_logger(__name__)

Feed: TypeAlias = AsyncGenerator[Sequence[Followed], None]
"""What came at one moment, together: the events of a commit, or what a model has just written."""
ConversationFeed: TypeAlias = AsyncGenerator[tuple[StoredTurn, Sequence[Followed]], None]
"""The same with the turn it is of."""


@dataclass(slots=True, kw_only=True)
class Permit:
    """Whether a reader may go on; asked again now and then while it reads."""

    is_still_given: Callable[[], Awaitable[bool]]
    every_seconds: float = _CHECK_SECONDS
    _asked_at: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float:
        """Until it has to be asked for again."""
        return max(self._asked_at + self.every_seconds - time.monotonic(), 0)

    async def holds(self) -> bool:
        """Raises `StoreUnavailable` when the database, which would have to say so, is away."""
        if self.seconds_left:
            return True
        if not await self.is_still_given():
            return False
        self._asked_at = time.monotonic()
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What ends a stream before the turn does."""

    stopping: asyncio.Event
    """The process is about to stop."""
    permit: Permit
    until_blocked: bool = False
    """It wants no more than what happens until the turn waits for somebody or for a time."""


async def follow(services: Services, stored: StoredTurn, cursor: Cursor, bounds: Bounds) -> Feed:
    """Everything behind `cursor`, then what happens, until the turn has ended or is deleted.

    Args:
        services: of this process.
        stored: the turn, as it was at some moment before.
        cursor: what the reader has of it.
        bounds: what else ends it.
    """
    turn_id = stored.turn.identity.turn_id
    follower = _Follower.of(services, stored, cursor)
    with services.journals.followed(turn_id) as following:
        while not bounds.stopping.is_set():
            try:
                if not await bounds.permit.holds():
                    return
                for news in await follower.look():
                    yield news
                if follower.may_have_changed:
                    continue
                if follower.has_ended or following.is_gone:
                    return
                if bounds.until_blocked and await follower.is_at_rest():
                    return
            except StoreUnavailable:
                await _until_it_may_be_back(bounds)
                follower.may_have_changed = True
                continue
            follower.may_have_changed |= await _change(following, follower.version, bounds)


async def follow_conversation(
    services: Services,
    conversation: tuple[TenantId, ConversationId],
    place: tuple[int, Cursor],
    bounds: Bounds,
) -> ConversationFeed:
    """Everything behind `place`, turn by turn, then what happens, until it is deleted.

    Args:
        services: of this process.
        conversation: which one.
        place: the number of a turn, from 1, and what the reader has of that turn.
        bounds: what else ends it.
    """
    number, cursor = place
    with services.journals.followed_conversation(*conversation) as following:
        while not bounds.stopping.is_set():
            try:
                if not await bounds.permit.holds():
                    return
                stored = await services.feeds.turn_from(*conversation, number)
            except StoreUnavailable:
                await _until_it_may_be_back(bounds)
                continue
            if stored is None:
                if following.is_gone or bounds.until_blocked:
                    return
                await _change(following, number - 1, bounds)
                continue
            reading = _OneOfSeveral(stored, cursor)
            async with aclosing(reading.follow(services, bounds)) as feed:
                async for news in feed:
                    yield stored, news
            if not reading.has_ended:
                return
            number, cursor = stored.number + 1, Cursor(version=0)


class _OneOfSeveral:
    """A turn of a conversation, to its end, behind which the next one comes."""

    def __init__(self, stored: StoredTurn, cursor: Cursor) -> None:
        self._stored = stored
        self._cursor = cursor
        self.has_ended = stored.turn.is_terminal and cursor.version >= stored.turn.version

    async def follow(self, services: Services, bounds: Bounds) -> Feed:
        if self.has_ended:
            return
        async with aclosing(follow(services, self._stored, self._cursor, bounds)) as feed:
            async for news in feed:
                self.has_ended = news[-1].event.type in TERMINAL_TYPES
                yield news


async def news_of(services: Services, stored: StoredTurn, cursor: Cursor) -> Feed:
    """What is there behind `cursor` at this moment; it ends without waiting.

    Raises:
        StoreUnavailable: the database does not answer.
    """
    follower = _Follower.of(services, stored, cursor)
    while follower.may_have_changed:
        for news in await follower.look():
            yield news


@dataclass(slots=True, kw_only=True)
class _Follower:
    """One reader at one turn, between two waits."""

    services: Services
    turn_id: TurnId
    reading: Reading
    known: int
    """A version that the turn has reached for certain."""
    rests_at: int | None
    """A version at which the turn was seen at rest."""
    may_have_changed: bool = True
    has_ended: bool = False
    _was_suspended: bool = False

    @classmethod
    def of(cls, services: Services, stored: StoredTurn, cursor: Cursor) -> Self:
        turn = stored.turn
        return cls(
            services=services,
            turn_id=turn.identity.turn_id,
            reading=Reading(cursor, turn.attempt_in_flight),
            known=turn.version,
            rests_at=None if turn.is_at_work else turn.version,
        )

    @property
    def version(self) -> int:
        return self.reading.cursor.version

    async def look(self) -> Sequence[Sequence[Followed]]:
        """What is stored behind the cursor, then what is beyond it in this process.

        Of what is stored no more than some commits; then it `may_have_changed` still.
        """
        found = await self._stored() if self.may_have_changed else []
        if not self.may_have_changed:
            answer = self.services.live_text.answer(self.turn_id)
            if pieces := self.reading.live(answer, self.services.clock):
                found.append(pieces)
        return found

    async def _stored(self) -> list[Sequence[Followed]]:
        rows = await self.services.journals.behind(self.turn_id, self.version, known=self.known)
        through = 0
        if self.reading.lacks_something_before(rows):
            through = await self.services.feeds.pruned_through(self.turn_id)
        found: list[Sequence[Followed]] = []
        for row in rows:
            found += filter(None, (self.reading.pruned(through, row), self.reading.stored(row)))
            self.has_ended = row.events[-1].type in TERMINAL_TYPES
            self._was_suspended |= any(
                isinstance(e, TurnSuspended | TurnPaused) for e in row.events
            )
        self.may_have_changed = len(rows) == ROWS_AT_ONCE and not self.has_ended
        return found

    async def is_at_rest(self) -> bool:
        """Whether the reader has everything up to where the turn waits."""
        if self._was_suspended:
            self._was_suspended = False
            turn = await self.services.turns.load(self.turn_id)
            self.rests_at = None if turn is None or turn.is_at_work else turn.version
        return self.rests_at is not None and self.version >= self.rests_at


async def _change(following: Following, known: int, bounds: Bounds) -> bool:
    """Until there may be news, or it is time to ask for the permit again."""
    return await following.change_from(known, within_seconds=bounds.permit.seconds_left)


async def _until_it_may_be_back(bounds: Bounds) -> None:
    """An open stream outlives a database that is restarted: its reader only waits longer."""
    _log.warning("feed_waits_for_the_database")
    with suppress(TimeoutError):
        await asyncio.wait_for(bounds.stopping.wait(), _AGAIN_SECONDS)
