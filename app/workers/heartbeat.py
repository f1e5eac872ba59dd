"""Keeping claims alive: one statement for all of a worker's turns, from a thread of its own.

A tool that blocks the event loop must not cost its turn the claim, nor the turns beside it, so the
renewals have a thread, an event loop and a connection to themselves.

An owner that could not renew for `give_up_seconds` must assume that its turns are another's by now,
so it drops them before the lease can have run out.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

import structlog

from app.ports import Renewals, StoreUnavailable
from app.turn.ids import TurnId

_ENDS_WITHIN_SECONDS = 5

OpenRenewals: TypeAlias = Callable[[], AbstractAsyncContextManager[Renewals]]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Renews the claims of one worker."""

    renewals: OpenRenewals
    """Opened in the heartbeat's own thread, so over a connection of its own."""
    worker: str
    renew_seconds: float
    give_up_seconds: float
    """Shorter than the lease."""
    held: Callable[[], Mapping[TurnId, int]]
    """The claims to renew, by turn and epoch; asked from another thread."""
    drop: Callable[[TurnId], None]
    """Told of each turn that is no longer ours, from another thread."""
    renewed: Callable[[TurnId, int, float], None]
    """Told of each claim, by turn and epoch, that was ours at a time (`time.monotonic()`)."""

    async def run(self) -> None:
        """Renew until cancelled; never raises because the database is away."""
        async with self.renewals() as claims:
            renewed_at = time.monotonic()
            while True:
                await asyncio.sleep(self.renew_seconds)
                asked_at, held = time.monotonic(), self.held()
                deadline = renewed_at + self.give_up_seconds
                if not held or await self._renewed_by(deadline, claims, held):
                    renewed_at = asked_at  # when the lease began is not known better

    async def _renewed_by(
        self, deadline: float, claims: Renewals, held: Mapping[TurnId, int]
    ) -> bool:
        """Renew once; at the deadline the turns are dropped, be there an answer or not."""
        renewing = asyncio.create_task(self._renewed(claims, held))
        try:
            await asyncio.wait((renewing,), timeout=max(deadline - time.monotonic(), 0))
            if not renewing.done() or not (renewing.result() or time.monotonic() < deadline):
                self._drop(held)
            return await renewing
        finally:
            renewing.cancel()

    async def _renewed(self, claims: Renewals, held: Mapping[TurnId, int]) -> bool:
        asked_at = time.monotonic()
        try:
            still = await claims.renew(self.worker, held)
        except StoreUnavailable:
            _log.warning("claims_not_renewed", worker=self.worker, turns=len(held))
            return False
        for turn_id in still:
            self.renewed(turn_id, held[turn_id], asked_at)
        now_held = self.held()
        self._drop({t: e for t, e in held.items() if t not in still and now_held.get(t) == e})
        return True

    def _drop(self, lost: Mapping[TurnId, int]) -> None:
        for turn_id in lost:
            _log.warning("claim_lost", worker=self.worker, turn_id=turn_id)
            self.drop(turn_id)


@contextmanager
def beating(heartbeat: Heartbeat) -> Generator[None, None, None]:
    """The heartbeat runs in a thread of its own while the context is open."""
    loop = asyncio.new_event_loop()
    running = loop.create_task(heartbeat.run())

    def beat() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(running)
        loop.close()

    thread = threading.Thread(target=beat, name=f"heartbeat of {heartbeat.worker}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(running.cancel)
        thread.join(timeout=_ENDS_WITHIN_SECONDS)
