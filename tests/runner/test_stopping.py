"""An orderly stop: tools in flight end, nothing more begins, and what is not done is said so."""

import asyncio
import threading
from contextlib import suppress

import pytest

from app.ports import Tool
from app.settings import Settings
from app.tools import tool
from app.turn.agent import Limits
from app.turn.inputs import Pause, Resume
from app.turn.states import ModelDue, ToolsDue
from app.turn.status import Status
from app.turn.transcript import Outcome
from tests.support.bench import bench
from tests.support.deaths import let_claims_run_out
from tests.support.models import Model, calls, says


class Gates:
    """Two tools that write, each ending when its gate is opened."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.pay_may_end, self.ship_may_end = asyncio.Event(), asyncio.Event()
        self.both_entered = asyncio.Event()

    def tools(self) -> list[Tool]:
        @tool(effect="writes")
        async def pay() -> str:
            self.enter("pay")
            await self.pay_may_end.wait()
            return "paid"

        @tool(effect="writes")
        async def ship() -> str:
            self.enter("ship")
            await self.ship_may_end.wait()
            return "shipped"

        return [pay, ship]

    def enter(self, name: str) -> None:
        self.entered.append(name)
        if len(self.entered) == 2:
            self.both_entered.set()


async def test_all_tools_in_flight_are_let_end_not_only_the_first(
    database_dsn: str, settings: Settings
) -> None:
    gates, model, stopping = (
        Gates(),
        Model([[calls("pay", "ship")], [says("Done.")]]),
        asyncio.Event(),
    )
    async with bench(database_dsn, settings, model, gates.tools()) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim(), stopping))
        await gates.both_entered.wait()
        stopping.set()
        gates.pay_may_end.set()
        await one.until_stored(turn_id, "TOOL_COMPLETED")
        gates.ship_may_end.set()
        rests = await driving
        record = await one.record(turn_id)

    assert not rests
    assert [result.content for result in record.results.values()] == ["paid", "shipped"]
    assert isinstance(record.turn.state, ModelDue)
    assert len(model.requests) == 1


async def test_a_tool_that_had_not_begun_is_begun_by_the_next_worker(
    database_dsn: str, settings: Settings
) -> None:
    gates, model, stopping = (
        Gates(),
        Model([[calls("pay", "ship")], [says("Done.")]]),
        asyncio.Event(),
    )
    one_by_one = Limits(parallel_tools=1)
    async with bench(database_dsn, settings, model, gates.tools(), limits=one_by_one) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim(), stopping))
        await one.until_stored(turn_id, "TOOL_STARTED")
        stopping.set()
        gates.pay_may_end.set()
        await driving
        between = await one.record(turn_id)

        gates.ship_may_end.set()
        await let_claims_run_out(one.dsn)
        assert await one.drive(await one.claim())
        record = await one.record(turn_id)

    assert isinstance(between.turn.state, ToolsDue)
    assert [call.attempt for call in between.turn.open_calls] == [0]
    assert {result.outcome for result in record.results.values()} == {Outcome.COMPLETED}
    assert gates.entered == ["pay", "ship"]
    assert record.turn.status is Status.COMPLETED


async def test_a_writing_tool_that_outlasts_the_grace_is_cut_and_reported_unknown(
    database_dsn: str, settings: Settings
) -> None:
    gates, model, stopping = (
        Gates(),
        Model([[calls("pay", "ship")], [says("Hm.")]]),
        asyncio.Event(),
    )
    async with bench(database_dsn, settings, model, gates.tools(), grace_seconds=0.1) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim(), stopping))
        await gates.both_entered.wait()
        stopping.set()
        gates.ship_may_end.set()
        await driving
        await let_claims_run_out(one.dsn)
        await one.drive(await one.claim())
        record = await one.record(turn_id)

    outcomes = {result.tool_name: result.outcome for result in record.results.values()}
    assert outcomes == {"pay": Outcome.UNKNOWN, "ship": Outcome.COMPLETED}
    assert sorted(gates.entered) == ["pay", "ship"]


async def test_a_model_call_is_dropped_at_once_and_made_again_by_the_next_worker(
    database_dsn: str, settings: Settings
) -> None:
    never, stopping = asyncio.Event(), asyncio.Event()
    model = Model([[never], [says("Done.")]])
    async with bench(database_dsn, settings, model) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim(), stopping))
        await model.asked.wait()
        stopping.set()
        rests = await driving
        await let_claims_run_out(one.dsn)
        await one.drive(await one.claim())
        record = await one.record(turn_id)

    assert not rests
    assert model.left.is_set()
    assert record.turn.status is Status.COMPLETED
    assert record.types.count("STEP_RECOVERED") == 1


# --- Tools that do not end by themselves ---------------------------------------------------------


class Endless:
    """Tools that begin and do not end by themselves, and what was seen of them."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.left = asyncio.Event()
        self.never = asyncio.Event()
        self.in_a_thread = threading.Event()

    async def wait(self) -> str:
        self.entered.set()
        try:
            await self.never.wait()
        finally:
            self.left.set()
        return "ended"

    def tool(self, name: str) -> Tool:
        @tool(effect="reads")
        async def look_up() -> str:
            return await self.wait()

        @tool(effect="idempotent")
        async def book() -> str:
            return await self.wait()

        @tool(effect="writes")
        async def pay() -> str:
            return await self.wait()

        @tool(effect="idempotent")
        def book_in_a_thread() -> str:
            self.entered.set()
            self.in_a_thread.wait()
            return "booked"

        @tool(effect="writes")
        async def deaf() -> str:
            self.entered.set()
            while not self.never.is_set():
                with suppress(asyncio.CancelledError):
                    await self.never.wait()
            return "heard at last"

        known: list[Tool] = [look_up, book, pay, book_in_a_thread, deaf]
        return next(each for each in known if each.spec.name == name)


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("look_up", Outcome.CANCELLED),
        ("book", Outcome.CANCELLED),
        ("pay", Outcome.UNKNOWN),
        ("deaf", Outcome.UNKNOWN),
    ],
)
async def test_case_124_a_cancelled_turn_ends_though_its_tool_does_not(
    database_dsn: str, settings: Settings, name: str, outcome: Outcome
) -> None:
    endless, model = Endless(), Model([[calls(name)], [says("never")]])
    async with bench(
        database_dsn, settings, model, [endless.tool(name)], grace_seconds=0.05
    ) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await endless.entered.wait()
        await one.cancel(turn_id)
        assert await driving
        endless.never.set()
        record = await one.checked(turn_id)

    assert record.turn.status is Status.CANCELLED
    assert [result.outcome for result in record.results.values()] == [outcome]
    assert len(model.requests) == 1


async def test_a_tool_that_ends_within_its_grace_keeps_its_result(
    database_dsn: str, settings: Settings
) -> None:
    endless, model = Endless(), Model([[calls("pay")], [says("never")]])
    async with bench(database_dsn, settings, model, [endless.tool("pay")]) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await endless.entered.wait()
        await one.cancel(turn_id)
        endless.never.set()
        await driving
        record = await one.checked(turn_id)

    assert [result.content for result in record.results.values()] == ["ended"]
    assert record.turn.status is Status.CANCELLED


@pytest.mark.parametrize(
    ("name", "outcome"), [("look_up", Outcome.CANCELLED), ("pay", Outcome.UNKNOWN)]
)
async def test_case_70_a_paused_turn_whose_tool_did_not_end_goes_on_with_the_model(
    database_dsn: str, settings: Settings, name: str, outcome: Outcome
) -> None:
    endless, model = Endless(), Model([[calls(name)], [says("Done.")]])
    async with bench(
        database_dsn, settings, model, [endless.tool(name)], grace_seconds=0.05
    ) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await endless.entered.wait()
        await one.command(turn_id, Pause())
        await driving
        paused = await one.record(turn_id)
        await one.command(turn_id, Resume())
        await one.run()
        record = await one.checked(turn_id)

    assert endless.left.is_set()
    assert paused.turn.status is Status.PAUSED
    assert [result.outcome for result in paused.results.values()] == [outcome]
    assert record.turn.status is Status.COMPLETED
    assert record.types.count("TOOL_STARTED") == 1


async def test_a_thread_goes_on_so_that_not_even_an_idempotent_call_in_it_is_over(
    database_dsn: str, settings: Settings
) -> None:
    endless, model = Endless(), Model([[calls("book_in_a_thread")], [says("never")]])
    tools = [endless.tool("book_in_a_thread")]
    async with bench(database_dsn, settings, model, tools, grace_seconds=0.05) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await endless.entered.wait()
        await one.cancel(turn_id)
        await driving
        endless.in_a_thread.set()
        record = await one.checked(turn_id)

    assert [result.outcome for result in record.results.values()] == [Outcome.UNKNOWN]


async def test_an_orderly_stop_ends_a_reading_tool_that_outlasts_its_grace(
    database_dsn: str, settings: Settings
) -> None:
    endless, model, stopping = (
        Endless(),
        Model([[calls("look_up")], [says("Done.")]]),
        asyncio.Event(),
    )
    tools = [endless.tool("look_up")]
    async with bench(database_dsn, settings, model, tools, grace_seconds=0.05) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim(), stopping))
        await endless.entered.wait()
        stopping.set()
        assert not await driving
        record = await one.checked(turn_id)

    assert [result.outcome for result in record.results.values()] == [Outcome.CANCELLED]
    assert isinstance(record.turn.state, ModelDue)
    assert "STEP_RECOVERED" not in record.types
