"""A bounded set of daemon threads for tools that block.

Not `ThreadPoolExecutor`: the interpreter waits for its threads before it exits, so that one hung
tool would hold up an orderly stop for ever. Here such a call dies with the process, which is what
a turn is prepared for: the call has begun and nobody knows how it ended.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import TypeAlias, TypeVar

T = TypeVar("T")
_Work: TypeAlias = Callable[[], None]


class Threads:
    """Runs calls in at most `limit` threads (from 1), made when first needed and then kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._work: SimpleQueue[_Work] = SimpleQueue()
        self._idle = Semaphore(0)
        self._lock = Lock()
        self._started = 0

    async def run(self, call: Callable[[], T]) -> T:
        """The call's value or exception, the call made in a thread with the caller's contextvars.

        With all threads busy it waits its turn. Cancelled while it waits, the call is never made;
        cancelled later, the call goes on in its thread and what it says is dropped. The call may
        not raise StopIteration, which no asyncio future can carry.

        Raises:
            RuntimeError: no thread is idle and none could be started; the call is not made.
        """
        future: Future[T] = Future()
        work = partial(_settle, future, partial(copy_context().run, call))
        self._have_a_thread()
        self._work.put(work)
        return await asyncio.wrap_future(future)

    def _have_a_thread(self) -> None:
        if self._idle.acquire(blocking=False):
            return
        with self._lock:
            if self._started == self._limit:
                return
            Thread(target=self._serve, name=f"tool-{self._started}", daemon=True).start()
            self._started += 1

    def _serve(self) -> None:
        while True:
            self._work.get()()
            self._idle.release()


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        value = call()
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is awaited
        future.set_exception(error)
    else:
        future.set_result(value)
