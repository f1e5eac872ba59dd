"""Whatever goes wrong in a tool is said to the model; only cancellation of the call is raised."""

import asyncio
import threading
from collections.abc import Awaitable

import pytest
from pydantic import BaseModel
from typing_extensions import override

from app.tools import NotDone, tool
from app.tools.outputs import MAX_ERROR_CHARACTERS
from app.tools.threads import Threads
from app.turn.transcript import Outcome
from tests.tools.calls import a_context, error, not_started

CLOSED = "the shop is closed"


async def test_an_exception_is_told_to_the_model_with_its_type_and_without_a_traceback() -> None:
    @tool
    async def soon() -> None:
        msg = "no such order"
        raise LookupError(msg)

    @tool
    def there() -> None:
        raise LookupError

    assert await soon.run("{}", a_context()) == error("LookupError: no such order")
    assert await there.run("{}", a_context()) == error("LookupError")


async def test_a_long_message_of_an_exception_is_cut() -> None:
    @tool
    async def verbose() -> None:
        raise ValueError("x" * 5_000)

    said = await verbose.run("{}", a_context())

    assert said.content.startswith("ValueError: xxx")
    assert len(said.content) == MAX_ERROR_CHARACTERS


async def test_an_exception_that_cannot_say_its_message_is_told_by_its_type() -> None:
    class Broken(Exception):  # noqa: N818
        @override
        def __str__(self) -> str:
            raise TypeError

    @tool
    async def broken() -> None:
        raise Broken

    said = await broken.run("{}", a_context())

    assert said.content.endswith("Broken")
    assert said.outcome is Outcome.ERROR


async def test_a_tool_that_says_not_done_counts_as_not_started() -> None:
    @tool
    async def soon() -> None:
        raise NotDone(CLOSED)

    @tool
    def there() -> None:
        raise NotDone(CLOSED)

    expected = not_started(f"Nothing was done: {CLOSED}")
    assert await soon.run("{}", a_context()) == expected
    assert await there.run("{}", a_context()) == expected


@pytest.mark.parametrize("raised", [StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_nothing_that_is_raised_in_a_thread_escapes(raised: type[BaseException]) -> None:
    @tool
    def wild() -> None:
        raise raised

    assert await wild.run("{}", a_context()) == error(raised.__name__)


async def test_an_async_tool_that_exits_does_not_end_the_process() -> None:
    @tool
    async def leaving() -> None:
        raise SystemExit(3)

    @tool
    async def several() -> None:
        msg = "several"
        raise BaseExceptionGroup(msg, [SystemExit(3)])

    assert await leaving.run("{}", a_context()) == error("SystemExit: 3")
    assert (await several.run("{}", a_context())).outcome is Outcome.ERROR


async def test_cancelling_the_call_passes_through_an_async_tool() -> None:
    entered = asyncio.Event()

    @tool
    async def endless() -> None:
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(endless.run("{}", a_context()))
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelling_the_call_does_not_wait_for_a_thread() -> None:
    entered, leave = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tool
    def stuck() -> None:
        loop.call_soon_threadsafe(entered.set)
        leave.wait()

    task = asyncio.create_task(stuck.run("{}", a_context()))
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    leave.set()


async def test_something_cancelled_within_a_tool_is_its_error_and_no_cancellation() -> None:
    @tool
    async def inner() -> None:
        waiting = asyncio.get_running_loop().create_future()
        waiting.cancel()
        await waiting

    assert await inner.run("{}", a_context()) == error("CancelledError")


async def test_a_validator_that_raises_anything_is_an_error_and_the_tool_is_not_run() -> None:
    class Picky(BaseModel):
        @override
        def model_post_init(self, _: object, /) -> None:
            raise KeyError(self)

    @tool
    def take(thing: Picky) -> None: ...

    said = await take.run('{"thing": {}}', a_context())

    assert said == error("Invalid arguments, the tool was not run: KeyError: Picky()")


async def test_a_function_that_hands_out_a_coroutine_is_told_to_be_async() -> None:
    async def later() -> str:
        return "never"

    @tool
    def misdeclared() -> Awaitable[str]:
        return later()

    said = await misdeclared.run("{}", a_context())

    assert said.outcome is Outcome.NOT_STARTED
    assert "declare it with 'async def'" in said.content


async def test_without_a_thread_to_run_in_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(_: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    ran = list[int]()

    @tool
    def there() -> None:
        ran.append(1)

    monkeypatch.setattr(threading.Thread, "start", no_more)
    monkeypatch.setattr("app.tools.local._THREADS", Threads(1))

    said = await there.run("{}", a_context())

    assert said.outcome is Outcome.NOT_STARTED
    assert "no thread to run it in (can't start new thread)" in said.content
    assert ran == []


async def test_a_result_that_no_json_can_say_is_an_error_that_says_the_tool_ran() -> None:
    @tool
    async def opaque() -> object:
        return object()

    said = await opaque.run("{}", a_context())

    assert said.outcome is Outcome.ERROR
    assert said.content.startswith("The tool ran to its end, but its result (object) cannot")
