"""The worker: claims turns that are due, drives them, and gives them back."""

import asyncio
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial

import structlog

from app.ports import (
    AgentCatalog,
    ClaimedTurn,
    ClaimLost,
    ClaimQueue,
    Lease,
    OutcomeUnknown,
    StoreUnavailable,
    TurnNotReadable,
    Wakeups,
)
from app.runner.drive import Driver
from app.runner.tasks import cancel_and_wait
from app.turn.ids import Identity, TurnId
from app.workers.heartbeat import Heartbeat, OpenRenewals, beating
from app.workers.kept_places import Doubts, KeptPlace
from app.workers.sweeper import Sweeper

_POLLS_PER_SWEEP = 2
"""Waits last for minutes at least; a turn that is due waits for nothing but a look."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    concurrency: int
    """Turns driven at once; at least 1."""
    lease_seconds: float
    poll_seconds: float
    """How long a turn can go unnoticed when every hint is lost; the end of a wait twice as long."""
    renew_seconds: float
    give_up_seconds: float


@dataclass(slots=True, kw_only=True)
class Worker:
    """Drives up to `settings.concurrency` turns at once until it is stopped."""

    name: str
    """Unique among living workers."""
    settings: WorkerSettings
    claims: ClaimQueue
    renewals: OpenRenewals
    """Opens the queue anew, for the heartbeat's thread."""
    wakeups: Wakeups
    catalog: AgentCatalog
    driver: Driver
    sweeper: Sweeper
    is_waiting: bool = field(default=False, init=False)
    """Whether it waits for turns to become due, or for a place to get free."""
    _held: dict[TurnId, ClaimedTurn] = field(default_factory=dict)
    _driving: dict[TurnId, asyncio.Task[None]] = field(default_factory=dict)
    _known_at: dict[tuple[TurnId, int], float] = field(default_factory=dict)
    """When each claim was last known to be ours, by turn and epoch (`time.monotonic()`)."""
    _kept: set[KeptPlace] = field(default_factory=set)
    _none_kept: asyncio.Event = field(default_factory=asyncio.Event)
    _doubts: Doubts = field(default_factory=Doubts)
    _none_due: bool = False
    """By the last look at all turns, as far as is known since."""
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _context: Context = field(default_factory=copy_context)
    """What is logged of a drive is not of the request that has handed it over."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until `stopping` is set; then drop model calls, let tools end, release.

        Never raises because of a turn or because the database is away.
        """
        self._stopping, self._context = stopping, copy_context()
        seldom = _POLLS_PER_SWEEP * self.settings.poll_seconds
        sweep = self.sweeper.run(stopping, every_seconds=seldom)
        with beating(self._heartbeat(asyncio.get_running_loop())):
            beside = [
                asyncio.create_task(sweep, name=f"sweeper of {self.name}"),
                asyncio.create_task(self._wake_at_stop(stopping)),
            ]
            try:
                await self._claim_until(stopping)
                await self._until_none_kept()
                await self._release_strays()
                await asyncio.gather(*self._driving.values(), return_exceptions=True)
            finally:
                await cancel_and_wait([*beside, *self._driving.values()])

    async def _claim_until(self, stopping: asyncio.Event) -> None:
        """Turns that this process is told of are claimed by name, which costs no look at others.

        All are looked at when nobody may have told of them: at the beginning, when a place gets
        free, every poll interval; and again until none is due.
        """
        loop = asyncio.get_running_loop()
        look_at = loop.time()
        told: AbstractSet[TurnId] | None = None
        while not stopping.is_set():
            # Where more are named than there are places, tenants share them.
            is_look = told is None or len(told) > self._free or loop.time() >= look_at
            if is_look:
                look_at = loop.time() + self.settings.poll_seconds
            await self._release_strays()
            claimed = await self._claim_some(None if is_look else told)
            more = is_look and claimed
            told = None if more else await self._idle(look_at - loop.time())

    async def _idle(self, seconds: float) -> AbstractSet[TurnId] | None:
        """Wait for turns; meanwhile those that this process stores may have what is free.

        That is so behind a look which has found no other, and until a place gets free that others
        may have waited for: no tenant's turns go past another's.
        """
        self.is_waiting = True
        try:
            return await self.wakeups.runnable.wait(seconds)
        finally:
            self.is_waiting = False

    async def _wake_at_stop(self, stopping: asyncio.Event) -> None:
        """End the wait for turns, of which `_claim_until` then sees why."""
        await stopping.wait()
        self.wakeups.runnable.look()

    @property
    def is_idle(self) -> bool:
        """Whether it waits, and no turn is due that this process could know of."""
        return self.is_waiting and self._none_due

    @property
    def _free(self) -> int:
        return self.settings.concurrency - len(self._driving) - len(self._kept)

    async def _claim_some(self, named: AbstractSet[TurnId] | None) -> bool:
        """Whether any were claimed, of those that are named or of all."""
        if self._free <= 0:
            return False
        asked_at = time.monotonic()
        try:
            claimed = await self.claims.claim(
                self.name, limit=self._free, versions=self.catalog.versions(), named=named
            )
        except StoreUnavailable:
            _log.warning("claim_failed", worker=self.name)
            self._none_due = False
            return False
        if named is None:
            self._none_due = not claimed
        for turn in claimed:
            self._start(turn, asked_at)
        return bool(claimed)

    def keep(self, identity: Identity) -> KeptPlace | None:
        """A place for a turn that is about to be stored (`ports.Places`)."""
        version = (identity.agent_id, identity.agent_version)
        if not self.is_idle or self._free <= 0 or version not in self.catalog.versions():
            return None
        if identity.turn_id in self._driving:  # an earlier claim of it is about to end
            return None
        place = KeptPlace(
            Lease(worker=self.name, seconds=self.settings.lease_seconds), self._settle
        )
        self._kept.add(place)
        self._none_kept.clear()
        return place

    def _settle(
        self, place: KeptPlace, claimed: ClaimedTurn | None, in_doubt: TurnId | None
    ) -> None:
        if place not in self._kept:
            return
        was_full = self._free <= 0
        self._kept.discard(place)
        if claimed is not None:
            self._start(claimed, place.kept_at)
        if in_doubt is not None:
            self._doubts.add(in_doubt, place)
        if in_doubt is not None or (was_full and self._free > 0):
            self._look_for_others()
        if not self._kept:
            self._none_kept.set()

    async def _until_none_kept(self) -> None:
        """What is being stored with a claim of ours is driven, if only to be released."""
        if self._kept:
            await self._none_kept.wait()

    async def _release_strays(self) -> None:
        """Give back claims that may have been made for us without our being told."""
        stray = self._doubts.besides(self._held.keys())
        if not stray:
            return
        with suppress(StoreUnavailable):
            self._doubts.settle(await self.claims.release_strays(self.name, stray))

    def _look_for_others(self) -> None:
        """There was no place for others, so that nobody has looked for them."""
        self._none_due = False
        self.wakeups.runnable.look()

    def _start(self, claimed: ClaimedTurn, known_at: float) -> None:
        turn_id = claimed.turn.identity.turn_id
        held = self._held.get(turn_id)
        if held is not None and held.claim.epoch >= claimed.claim.epoch:
            return  # the answers to two claims have come in the other order
        before = self._driving.get(turn_id)
        self._known_at[_named(claimed)] = known_at
        self._held[turn_id] = claimed
        drive = self._drive(claimed, before)
        self._driving[turn_id] = asyncio.create_task(
            drive, name=f"drive {turn_id}", context=self._context.copy()
        )

    async def _drive(self, claimed: ClaimedTurn, before: asyncio.Task[None] | None) -> None:
        turn_id = claimed.turn.identity.turn_id
        try:
            if before is not None:
                # Our own claim had run out unnoticed, and we were the first to take the turn again.
                await cancel_and_wait([before])
            may_begin = partial(self._may_begin, claimed)
            if not await self.driver.drive(claimed, self._stopping, may_begin):
                await self._release(claimed)
        except (ClaimLost, OutcomeUnknown, StoreUnavailable, TurnNotReadable) as reason:
            # Not released: if the claim is still ours it runs out, and that is a pause for free.
            _log.warning("drive_ended", turn_id=turn_id, reason=type(reason).__name__)
        except Exception:  # noqa: BLE001 - one turn's fault must not end the others
            _log.exception("drive_failed", turn_id=turn_id)
        finally:
            was_full = self._free <= 0
            self._known_at.pop(_named(claimed), None)
            if self._held.get(turn_id) is claimed:
                del self._held[turn_id], self._driving[turn_id]
            if was_full:
                self._look_for_others()

    def _may_begin(self, claimed: ClaimedTurn) -> bool:
        """Whether the claim was ours so short a time ago that nobody else can have it by now.

        A process that was stopped for longer finds the turn gone, or about to go; the heartbeat
        says so as well, but may be a moment later.
        """
        known_at = self._known_at[_named(claimed)]
        return time.monotonic() - known_at < self.settings.give_up_seconds

    def _renewed(self, turn_id: TurnId, epoch: int, at: float) -> None:
        """From the heartbeat's thread; each line is one step of the interpreter."""
        claim = (turn_id, epoch)
        if claim in self._known_at:
            self._known_at[claim] = at

    async def _release(self, claimed: ClaimedTurn) -> None:
        held = {claimed.turn.identity.turn_id: claimed.claim.epoch}
        await self.claims.release(self.name, held)

    def _heartbeat(self, loop: asyncio.AbstractEventLoop) -> Heartbeat:
        return Heartbeat(
            renewals=self.renewals,
            worker=self.name,
            renew_seconds=self.settings.renew_seconds,
            give_up_seconds=self.settings.give_up_seconds,
            held=self._epochs,
            drop=lambda turn_id: _call_soon(loop, self._drop, turn_id),
            renewed=self._renewed,
        )

    def _epochs(self) -> Mapping[TurnId, int]:
        """The claims held, by turn and epoch; the copy is one step, so any thread may ask."""
        return {turn_id: held.claim.epoch for turn_id, held in self._held.copy().items()}

    def _drop(self, turn_id: TurnId) -> None:
        task = self._driving.get(turn_id)
        if task is not None:
            task.cancel()


def _named(claimed: ClaimedTurn) -> tuple[TurnId, int]:
    """A claim by its turn and epoch."""
    return claimed.turn.identity.turn_id, claimed.claim.epoch


def _call_soon(
    loop: asyncio.AbstractEventLoop, call: Callable[[TurnId], None], turn_id: TurnId
) -> None:
    with suppress(RuntimeError):  # the loop is closed: there is nothing left to drop
        loop.call_soon_threadsafe(call, turn_id)
