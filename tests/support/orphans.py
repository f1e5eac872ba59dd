"""Turns whose worker has died in the middle of a step, in a service whose worker a test runs."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from app.ports import ClaimedTurn
from tests.support.deaths import let_claims_run_out
from tests.support.polling import eventually
from tests.support.service import Service


async def claimed(service: Service) -> ClaimedTurn:
    """The one turn that is due, claimed by the service's worker."""
    worker = service.runtime.worker
    held = await eventually(
        lambda: worker.claims.claim(worker.name, limit=1, versions=worker.catalog.versions())
    )
    return held[0]


async def dies_with(service: Service, dsn: str, is_so: Callable[[], bool]) -> str:
    """The one turn that is due is driven until `is_so`, by a worker that dies then.

    Its lease has passed when this returns; the turn's id.
    """

    async def comes_true() -> bool:
        return is_so()

    return await dies_once(service, dsn, comes_true)


async def dies_once(service: Service, dsn: str, comes_true: Callable[[], Awaitable[bool]]) -> str:
    """The same, for what can only be asked about."""
    held = await claimed(service)
    driving = asyncio.create_task(service.runtime.worker.driver.drive(held, asyncio.Event()))
    try:
        await eventually(comes_true)
    finally:
        driving.cancel()
        with suppress(asyncio.CancelledError):
            await driving
    await let_claims_run_out(dsn)
    return held.turn.identity.turn_id


@asynccontextmanager
async def working(service: Service) -> AsyncGenerator[None]:
    """The service's worker works until the end of the block, and must then stop in order."""
    stopping = asyncio.Event()
    task = asyncio.create_task(service.runtime.worker.run(stopping))
    try:
        yield
    finally:
        stopping.set()
        async with asyncio.timeout(30):
            await task
