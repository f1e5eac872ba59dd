"""Requests to a turn whose worker is gone: they take its claim, so that no worker has it meanwhile.

A turn at work is nobody's but its worker's: a request leaves a flag, or waits. Where that worker is
gone there is nobody to see a flag, so the request acts in its place, by the same claim and the same
fence. If this process dies as well, the claim runs out like any other.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import structlog

from app.ports import Claim, StoreUnavailable
from app.runner.commit import Written
from app.services.deps import Caller, Services
from app.turn.crash_loop import makes_progress
from app.turn.state import Turn
from app.turn.status import Status

_log = structlog.get_logger(__name__)


class OrphanHeld:
    """The claim of an orphaned turn, as long as a request has it."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.is_done = False

    def done(self, written: Written) -> None:
        """What was asked for has taken effect; what only waits there leaves the turn orphaned."""
        self.is_done = makes_progress(written.events) or not written.turn.is_at_work


@asynccontextmanager
async def orphan_held(
    services: Services, caller: Caller, turn: Turn
) -> AsyncGenerator[OrphanHeld | None]:
    """The turn's claim until the block ends; `None` when the turn is not orphaned.

    Afterwards the turn is any worker's, or as orphaned as before where nothing was done.
    """
    turn_id = turn.identity.turn_id
    if turn.status is not Status.RUNNING:
        yield None
        return
    name = services.new_id(f"request:{caller.request_id}")
    claim = await services.orphans.take(name, turn_id)
    if claim is None:
        yield None
        return
    held = OrphanHeld(claim)
    try:
        yield held
    finally:
        await _give_back(services, turn, held)


async def _give_back(services: Services, turn: Turn, held: OrphanHeld) -> None:
    turn_id = turn.identity.turn_id
    try:
        if held.is_done:
            await services.orphans.release(held.claim.worker, {turn_id: held.claim.epoch})
            services.wakeups.announce(turn_id, runnable=True)
        else:
            await services.orphans.lapse(turn_id, held.claim)
    except StoreUnavailable:
        _log.warning("claim_not_given_back", turn_id=turn_id)  # it runs out
