"""Work that may be dropped, and code that may raise anything."""

import asyncio
from collections.abc import Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog

T = TypeVar("T")

DEAF_SECONDS = 5.0
"""How long foreign code that is no longer wanted may take to end."""
_DEAF: set[asyncio.Task[Any]] = set()
"""What has not: nothing else holds it any more."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """Work that came to its own end."""

    result: T


async def unless(
    work: Coroutine[Any, Any, T], *interruptions: Coroutine[Any, Any, object]
) -> Ended[T] | None:
    """Do `work`, or drop it as soon as one of the interruptions comes; `None`: it was dropped.

    All of them are over when this returns, but for work that does not heed its cancellation: it is
    left alone, for neither a turn nor a worker may wait for it. Raises what the work raises.
    """
    working = asyncio.create_task(work)
    waiting = [asyncio.create_task(interruption) for interruption in interruptions]
    try:
        await asyncio.wait((working, *waiting), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return Ended(working.result())
        for task in waiting:
            if task.done():
                task.result()  # an interruption that failed is no interruption
        return None
    finally:
        await cancel_and_wait(waiting)
        await let_go((working,), within_seconds=DEAF_SECONDS)


async def let_go(tasks: Collection[asyncio.Task[Any]], *, within_seconds: float) -> None:
    """End foreign code; what does not heed it goes on by itself, and nobody hears of it again."""
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    if not pending:
        return
    _, deaf = await asyncio.wait(pending, timeout=within_seconds)
    for task in deaf:
        _log.warning("task_not_stopped", task=task.get_name())
        _DEAF.add(task)
        task.add_done_callback(_forgotten)


def _forgotten(task: asyncio.Task[Any]) -> None:
    _DEAF.discard(task)
    if not task.cancelled():
        task.exception()  # asked for, so that the event loop does not complain of it


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """End tasks that are no longer wanted, whatever they come to."""
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


def is_for_us(error: BaseException) -> bool:
    """Whether an exception out of foreign code is not of its doing, and so not to be caught.

    The process or the event loop ends, or it is we who are cancelled.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)
