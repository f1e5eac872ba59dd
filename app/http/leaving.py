"""Callers who leave before they are answered."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from starlette.types import Receive


@asynccontextmanager
async def noticed(
    receive: Receive, when_left: Callable[[], Awaitable[None]]
) -> AsyncGenerator[None, None]:
    """Call `when_left` if the caller hangs up while the context is open; it is waited for."""
    has_left = asyncio.Event()
    watching = asyncio.create_task(_watch(receive, has_left))
    acting = asyncio.create_task(_act(has_left, when_left))
    try:
        yield
    finally:
        watching.cancel()
        if not has_left.is_set():
            acting.cancel()
        with suppress(asyncio.CancelledError):
            await acting


async def _watch(receive: Receive, has_left: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    has_left.set()


async def _act(has_left: asyncio.Event, when_left: Callable[[], Awaitable[None]]) -> None:
    await has_left.wait()
    await when_left()
