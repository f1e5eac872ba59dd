import asyncio
import threading
from contextvars import ContextVar

from pydantic import BaseModel

from app.tools import ToolContext, tool
from tests.tools.calls import a_context, completed, error

whose: ContextVar[str] = ContextVar("whose", default="nobody")


class Order(BaseModel):
    number: int
    lines: list[str]


async def test_an_async_function_runs_in_the_event_loop() -> None:
    @tool
    async def here(name: str) -> str:
        return f"{name} {asyncio.get_running_loop() is loop}"

    loop = asyncio.get_running_loop()

    assert await here.run('{"name": "x"}', a_context()) == completed("x True")


async def test_a_function_that_is_not_async_runs_in_a_daemon_thread() -> None:
    @tool
    def there() -> list[bool]:
        thread = threading.current_thread()
        return [thread is threading.main_thread(), thread.daemon]

    assert await there.run("{}", a_context()) == completed("[false,true]")


async def test_a_thread_sees_the_callers_contextvars() -> None:
    @tool
    def asked() -> str:
        return whose.get()

    whose.set("mine")

    assert await asked.run("{}", a_context()) == completed("mine")


async def test_a_tool_is_given_the_context_of_its_call() -> None:
    @tool
    def key(context: ToolContext) -> str:
        return f"{context.idempotency_key} {context.attempt} {context.is_replay}"

    said = await key.run("{}", a_context(attempt=2, is_replay=True))

    assert said == completed("turn_1:call_1 2 True")


async def test_arguments_come_as_the_types_of_the_signature() -> None:
    @tool
    def kinds(order: Order, numbers: tuple[int, ...], factor: float = 2) -> str:
        return f"{type(order).__name__} {numbers} {factor}"

    arguments = '{"order": {"number": 1, "lines": []}, "numbers": [1, 2]}'

    assert await kinds.run(arguments, a_context()) == completed("Order (1, 2) 2")


async def test_a_result_that_is_no_string_is_json() -> None:
    @tool
    def order() -> Order:
        return Order(number=7, lines=["ä"])

    assert await order.run("{}", a_context()) == completed('{"number":7,"lines":["ä"]}')


async def test_arguments_that_do_not_fit_are_named_and_the_tool_is_not_run() -> None:
    ran = list[str]()

    @tool
    def order(sku: str, count: int) -> None:
        ran.append(f"{sku} {count}")

    said = await order.run('{"count": "many", "colour": "red"}', a_context())

    assert said == error(
        "Invalid arguments, the tool was not run:"
        "\n- sku: Field required"
        "\n- count: Input should be a valid integer, unable to parse string as an integer"
        "\n- colour: Extra inputs are not permitted"
    )
    assert ran == []
