"""Keeping claims alive: one statement for all of a worker's turns.

An owner that could not renew for `give_up_seconds` must assume that its turns are another's by now,
so it drops them before the lease can have run out.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from app.ports import ClaimQueue, StoreUnavailable
from app.turn.ids import TurnId

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Renews the claims of one worker."""

    claims: ClaimQueue
    worker: str
    renew_seconds: float
    give_up_seconds: float
    """Shorter than the lease."""
    held: Callable[[], Mapping[TurnId, int]]
    """The claims to renew, by turn and epoch."""
    drop: Callable[[TurnId], None]
    """Told of each turn that is no longer ours."""

    async def run(self) -> None:
        renewed_at = time.monotonic()
        while True:
            await asyncio.sleep(self.renew_seconds)
            asked_at, held = time.monotonic(), dict(self.held())
            if not held or await self._renewed_by(renewed_at + self.give_up_seconds, held):
                renewed_at = asked_at  # when the lease began is not known better

    async def _renewed_by(self, deadline: float, held: Mapping[TurnId, int]) -> bool:
        """Renew once; at the deadline the turns are dropped, be there an answer or not."""
        renewing = asyncio.create_task(self._renewed(held))
        try:
            await asyncio.wait((renewing,), timeout=max(deadline - time.monotonic(), 0))
            if not renewing.done() or not (renewing.result() or time.monotonic() < deadline):
                self._drop(held)
            return await renewing
        finally:
            renewing.cancel()

    async def _renewed(self, held: Mapping[TurnId, int]) -> bool:
        try:
            still = await self.claims.renew(self.worker, held)
        except StoreUnavailable:
            _log.warning("claims_not_renewed", worker=self.worker, turns=len(held))
            return False
        now_held = self.held()
        self._drop({t: e for t, e in held.items() if t not in still and now_held.get(t) == e})
        return True

    def _drop(self, lost: Mapping[TurnId, int]) -> None:
        for turn_id in lost:
            _log.warning("claim_lost", worker=self.worker, turn_id=turn_id)
            self.drop(turn_id)
