"""The worker: claims turns that are due, drives them, and gives them back."""

import asyncio
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from app.ports import (
    AgentCatalog,
    ClaimedTurn,
    ClaimLost,
    ClaimQueue,
    OutcomeUnknown,
    StoreUnavailable,
    TurnNotReadable,
    Wakeups,
)
from app.runner.drive import Driver
from app.runner.tasks import cancel_and_wait
from app.turn.ids import TurnId
from app.workers.heartbeat import Heartbeat, OpenRenewals, beating
from app.workers.sweeper import Sweeper

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    concurrency: int
    """Turns driven at once; at least 1."""
    poll_seconds: float
    """How long a turn can go unnoticed when every hint is lost, or a wait's end."""
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
    _held: dict[TurnId, ClaimedTurn] = field(default_factory=dict)
    _driving: dict[TurnId, asyncio.Task[None]] = field(default_factory=dict)
    _known_at: dict[tuple[TurnId, int], float] = field(default_factory=dict)
    """When each claim was last known to be ours, by turn and epoch (`time.monotonic()`)."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until `stopping` is set; then drop model calls, let tools end, release.

        Never raises because of a turn or because the database is away.
        """
        sweep = self.sweeper.run(stopping, every_seconds=self.settings.poll_seconds)
        with beating(self._heartbeat(asyncio.get_running_loop())):
            beside = [
                asyncio.create_task(sweep, name=f"sweeper of {self.name}"),
                asyncio.create_task(self._wake_at_stop(stopping)),
            ]
            try:
                await self._claim_until(stopping)
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
            free = self.settings.concurrency - len(self._driving)
            # Where more are named than there are places, tenants share them.
            is_look = told is None or len(told) > free or loop.time() >= look_at
            if is_look:
                look_at = loop.time() + self.settings.poll_seconds
            claimed = await self._claim_some(stopping, None if is_look else told)
            more = is_look and claimed
            told = None if more else await self.wakeups.runnable.wait(look_at - loop.time())

    async def _wake_at_stop(self, stopping: asyncio.Event) -> None:
        """End the wait for turns, of which `_claim_until` then sees why."""
        await stopping.wait()
        self.wakeups.runnable.look()

    async def _claim_some(
        self, stopping: asyncio.Event, named: AbstractSet[TurnId] | None = None
    ) -> bool:
        free = self.settings.concurrency - len(self._driving)
        if free <= 0:
            return False
        asked_at = time.monotonic()
        try:
            claimed = await self.claims.claim(
                self.name, limit=free, versions=self.catalog.versions(), named=named
            )
        except StoreUnavailable:
            _log.warning("claim_failed", worker=self.name)
            return False
        for turn in claimed:
            self._known_at[_named(turn)] = asked_at
            self._start(turn, stopping)
        return bool(claimed)

    def _start(self, claimed: ClaimedTurn, stopping: asyncio.Event) -> None:
        turn_id = claimed.turn.identity.turn_id
        before = self._driving.get(turn_id)
        self._held[turn_id] = claimed
        drive = self._drive(claimed, stopping, before)
        self._driving[turn_id] = asyncio.create_task(drive, name=f"drive {turn_id}")

    async def _drive(
        self, claimed: ClaimedTurn, stopping: asyncio.Event, before: asyncio.Task[None] | None
    ) -> None:
        turn_id = claimed.turn.identity.turn_id
        try:
            if before is not None:
                # Our own claim had run out unnoticed, and we were the first to take the turn again.
                await cancel_and_wait([before])
            if not await self.driver.drive(claimed, stopping, partial(self._may_begin, claimed)):
                await self._release(claimed)
        except (ClaimLost, OutcomeUnknown, StoreUnavailable, TurnNotReadable) as reason:
            # Not released: if the claim is still ours it runs out, and that is a pause for free.
            _log.warning("drive_ended", turn_id=turn_id, reason=type(reason).__name__)
        except Exception:  # noqa: BLE001 - one turn's fault must not end the others
            _log.exception("drive_failed", turn_id=turn_id)
        finally:
            is_full = len(self._driving) >= self.settings.concurrency
            self._known_at.pop(_named(claimed), None)
            if self._held.get(turn_id) is claimed:
                del self._held[turn_id], self._driving[turn_id]
            if is_full:  # there was no place for others, so that nobody has looked for them
                self.wakeups.runnable.look()

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
