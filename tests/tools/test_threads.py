import asyncio
import threading

import pytest

from app.tools.threads import Threads
from tests.support.polling import eventually


def count_up(counter: list[int]) -> int:
    counter.append(len(counter))
    return counter[-1]


async def test_a_call_gives_its_value_or_its_exception() -> None:
    threads = Threads(1)

    def fail() -> None:
        raise LookupError

    assert await threads.run(lambda: 42) == 42
    with pytest.raises(LookupError):
        await threads.run(fail)


async def test_no_more_threads_are_made_than_allowed_and_every_call_is_made() -> None:
    threads, seen, counter = Threads(3), set[str](), list[int]()

    def call() -> int:
        seen.add(threading.current_thread().name)
        return count_up(counter)

    await asyncio.gather(*(threads.run(call) for _ in range(50)))

    assert len(counter) == 50
    assert len(seen) <= 3


async def test_an_idle_thread_is_used_again() -> None:
    threads = Threads(8)

    async def is_idle() -> bool:
        idle = threads._idle  # pyright: ignore[reportPrivateUsage]
        is_free = idle.acquire(blocking=False)
        if is_free:
            idle.release()
        return is_free

    for _ in range(20):
        await threads.run(lambda: None)
        await eventually(is_idle)

    assert threads._started == 1  # pyright: ignore[reportPrivateUsage]


async def test_as_many_calls_run_at_once_as_there_are_threads() -> None:
    threads, together = Threads(4), threading.Barrier(4, timeout=5)

    await asyncio.gather(*(threads.run(together.wait) for _ in range(4)))

    assert not together.broken


async def test_a_call_cancelled_while_it_waits_for_a_thread_is_never_made() -> None:
    threads, counter, leave = Threads(1), list[int](), threading.Event()
    busy = asyncio.create_task(threads.run(leave.wait))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(threads.run(lambda: count_up(counter)))
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    leave.set()
    await busy
    await threads.run(lambda: None)

    assert counter == []
