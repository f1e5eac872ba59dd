"""Work that may be dropped, and code that may raise anything."""

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """Work that came to its own end."""

    result: T


async def unless(
    work: Coroutine[Any, Any, T], *interruptions: Coroutine[Any, Any, object]
) -> Ended[T] | None:
    """Do `work`, or drop it as soon as one of the interruptions comes; `None`: it was dropped.

    All of them are over when this returns. Raises what the work raises.
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
        await cancel_and_wait((working, *waiting))


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
