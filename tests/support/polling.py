"""Waiting for a condition, never for a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(condition: Callable[[], Found | None], *, timeout_seconds: float = 15) -> Found:
    """What `condition` gives as soon as it is true; fails when that takes too long."""
    give_up_at = time.monotonic() + timeout_seconds
    while not (found := condition()):
        if time.monotonic() > give_up_at:
            message = f"{condition} did not come true within {timeout_seconds:g} seconds"
            raise TimeoutError(message)
        time.sleep(0.01)  # between two looks, never instead of one
    return found


async def eventually(
    condition: Callable[[], Awaitable[Found | None]], *, timeout_seconds: float = 15
) -> Found:
    """`wait_for` for a condition that has to be awaited."""
    give_up_at = time.monotonic() + timeout_seconds
    while not (found := await condition()):
        if time.monotonic() > give_up_at:
            message = f"{condition} did not come true within {timeout_seconds:g} seconds"
            raise TimeoutError(message)
        await asyncio.sleep(0.01)
    return found
