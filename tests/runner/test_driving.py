"""What a turn's driver stores when, and what it lets go of."""

import asyncio
import itertools
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, cast

import pytest

from app.ports import ClaimedTurn, ClaimLost, ModelAnswer, TextDelta, Tool, TurnStore
from app.settings import Settings
from app.tools import tool
from app.turn.agent import Limits, RetryPolicy
from app.turn.events import ModelText, ToolCompleted
from app.turn.journal import JournalError
from app.turn.status import Status
from app.turn.transcript import ClosingMessage, Outcome
from tests.support.bench import Bench, bench
from tests.support.deaths import let_claims_run_out
from tests.support.models import Model, calls, says
from tests.support.oracles import check_events, check_fold, check_history
from tests.support.polling import eventually
from tests.support.turns import OVERLOADED


def gated(name: str, gate: asyncio.Event, effect: str = "reads") -> Tool:
    """A tool that ends when the gate opens."""

    async def wait() -> str:
        await gate.wait()
        return f"{name} done"

    return tool(effect=cast("Any", effect), name=name)(wait)


# --- What is stored when -------------------------------------------------------------------------


async def test_ten_tools_that_end_together_cost_one_commit(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    names = [f"tool_{n}" for n in range(10)]
    model = Model([[calls(*names)], [says("Done.")]])
    tools = [gated(name, gate) for name in names]
    async with bench(database_dsn, settings, model, tools, limits=Limits(parallel_tools=10)) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await one.until_stored(turn_id, "TOOL_STARTED", times=10)
        gate.set()
        await driving
        record = await one.record(turn_id)

    rounds = [[event.type for event in row.events] for row in record.journal]
    with_results = [types for types in rounds if "TOOL_COMPLETED" in types]
    assert len(with_results) == 1
    assert with_results[0].count("TOOL_COMPLETED") == 10
    assert with_results[0][-1] == "MODEL_STARTED"
    assert list(record.results) == list("ABCDEFGHIJ")


async def test_a_round_of_tools_takes_two_statements_whatever_their_number(
    database_dsn: str, settings: Settings
) -> None:
    async def statements(names: list[str]) -> list[str]:
        gate = asyncio.Event()
        gate.set()
        model = Model([[calls(*names)], [says("Done.")]])
        tools = [gated(name, gate) for name in names]
        async with bench(database_dsn, settings, model, tools) as one:
            counting = Counting(one.services.turns)
            await one.post(f"ses_{len(names)}")
            await counted(one, counting).drive(await one.claim(), asyncio.Event())
            return counting.statements

    # The history is read once; then begin, answer and begin of the tools, results and begin, end.
    expected = ["history", "append", "append", "append", "append"]
    assert await statements(["a"]) == expected
    assert await statements(["a", "b", "c", "d", "e"]) == expected


class Counting:
    """A store that writes down each statement it is asked for."""

    def __init__(self, store: TurnStore) -> None:
        self.statements: list[str] = []
        self._store = store

    def __getattr__(self, name: str) -> object:
        self.statements.append(name)
        return getattr(self._store, name)


def counted(one: Bench, counting: Counting) -> Any:  # noqa: ANN401 - a Driver
    store = cast("TurnStore", counting)
    return replace(one.driver, store=store, writer=replace(one.driver.writer, store=store))


async def test_a_finished_writing_call_is_stored_while_a_slow_reading_one_runs(
    database_dsn: str, settings: Settings
) -> None:
    at_once, later = asyncio.Event(), asyncio.Event()
    at_once.set()
    model = Model([[calls("slow", "pay")], [says("Done.")]])
    tools = [gated("slow", later), gated("pay", at_once, "writes")]
    async with bench(database_dsn, settings, model, tools) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await one.until_stored(turn_id, "TOOL_COMPLETED")
        between = await one.record(turn_id)
        later.set()
        await driving
        record = await one.record(turn_id)

    assert {name: r.outcome for name, r in between.results.items()} == {"B": Outcome.COMPLETED}
    finished = [e.result.tool_name for e in record.events if isinstance(e, ToolCompleted)]
    assert finished == ["pay", "slow"]
    assert list(record.results) == ["A", "B"]


async def test_no_tool_is_entered_by_a_process_that_stood_still_behind_its_mark(
    database_dsn: str, settings: Settings
) -> None:
    """Stopped between the commit and the call, it goes on when the turn is another's long since."""
    entered: list[str] = []

    @tool(effect="writes")
    async def pay() -> str:
        entered.append("pay")
        return "paid"

    looks = iter([True, True])  # before the model is called, and before the round is begun

    async with bench(database_dsn, settings, Model([[calls("pay")]]), [pay]) as one:
        turn_id = await one.post()
        with pytest.raises(ClaimLost, match="not renewed in time"):
            await one.driver.drive(
                await one.claim(), asyncio.Event(), may_begin=lambda: next(looks, False)
            )
        record = await one.record(turn_id)

    assert entered == []
    assert [type(event).__name__ for event in record.events][-1] == "ToolStarted"


async def test_text_is_stored_in_batches_not_by_the_piece(
    database_dsn: str, settings: Settings
) -> None:
    pieces = ["0123456789" * 10] * 50
    model = Model([[*(TextDelta(text=piece) for piece in pieces), says("".join(pieces))]])
    async with bench(database_dsn, settings, model) as one:
        turn_id = await one.post()
        await one.drive(await one.claim())
        record = await one.record(turn_id)

    sizes = [len(event.text) for event in record.events if isinstance(event, ModelText)]
    assert sum(sizes) == 5_000
    assert sizes == [2_100, 2_100, 800]


async def due_turn(one: Bench) -> ClaimedTurn | None:
    claims, catalog = one.worker.claims, one.worker.catalog
    return next(iter(await claims.claim("w", limit=1, versions=catalog.versions())), None)


async def test_a_turn_in_which_nothing_begins_does_not_keep_its_worker(
    database_dsn: str, settings: Settings
) -> None:
    at_once = RetryPolicy(max_retries=1, initial_delay=timedelta(0))
    model = Model([[OVERLOADED], [says("Done.")]])
    async with bench(database_dsn, settings, model, retry=at_once) as one:
        await one.post()
        await one.drive(await one.claim())
        held, now = await eventually(partial(due_turn, one)), one.services.clock()
        # Due when the driver asks what is next, and not yet when that is decided; again and again.
        times = itertools.cycle([now + timedelta(hours=1), now - timedelta(hours=1)])
        unsteady = replace(one.driver.writer, clock=lambda: next(times))
        with pytest.raises(JournalError, match="nothing begins"):
            await replace(one.driver, writer=unsteady).drive(held, asyncio.Event())


async def test_a_retry_that_is_due_at_once_is_begun_under_a_new_claim(
    database_dsn: str, settings: Settings
) -> None:
    """The commit that schedules it brings the turn to rest, and the claim ends with it."""
    at_once = RetryPolicy(max_retries=1, initial_delay=timedelta(0))
    model = Model([[OVERLOADED], [says("Done.")]])
    async with bench(database_dsn, settings, model, retry=at_once) as one:
        turn_id = await one.post()
        rested = await one.drive(await one.claim())
        before = await one.record(turn_id)
        await one.run()
        after = await one.record(turn_id)

    assert rested
    assert before.turn.status == Status.RETRY_SCHEDULED
    assert after.turn.status == Status.COMPLETED


# --- Cancelling ----------------------------------------------------------------------------------


async def test_a_cancellation_drops_the_model_call_and_closes_the_history(
    database_dsn: str, settings: Settings
) -> None:
    never = asyncio.Event()
    model = Model([[TextDelta(text="I was about to"), never]])
    async with bench(database_dsn, settings, model) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await model.asked.wait()
        await one.cancel(turn_id)
        async with asyncio.timeout(2):
            rests = await driving
        record = await one.record(turn_id)

    assert rests
    assert model.left.is_set()
    assert record.turn.status is Status.CANCELLED
    assert isinstance(record.transcript[-1], ClosingMessage)
    check_history(record)


async def test_case_54_a_cancellation_of_another_process_is_seen_even_when_its_hint_is_lost(
    database_dsn: str, settings: Settings
) -> None:
    never = asyncio.Event()
    model = Model([[never]])
    async with bench(database_dsn, settings, model) as one:
        turn_id = await one.post()
        deaf = replace(one.driver, wakeups=NoHints(one.driver.wakeups))
        driving = asyncio.create_task(deaf.drive(await one.claim(), asyncio.Event()))
        await model.asked.wait()
        await one.cancel(turn_id)
        async with asyncio.timeout(4):
            await driving
        record = await one.record(turn_id)

    assert record.turn.status is Status.CANCELLED


class NoHints:
    """Wake-ups of a process that nobody tells anything."""

    def __init__(self, wakeups: Any) -> None:  # noqa: ANN401 - a Wakeups
        self._wakeups = wakeups
        self.runnable = wakeups.runnable

    def announce(self, subject: Any, *, runnable: bool, is_progress: bool = False) -> None:  # noqa: ANN401
        pass

    def watch(self, turn_id: Any) -> Any:  # noqa: ANN401
        del turn_id
        return self._wakeups.watch("of no turn")


async def test_a_cancellation_during_tools_keeps_the_results_that_are_known(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[calls("pay", "look_up", "look_up")]])
    tools = [gated("pay", gate, "writes"), gated("look_up", gate)]
    async with bench(database_dsn, settings, model, tools, limits=Limits(parallel_tools=2)) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await one.until_stored(turn_id, "TOOL_STARTED", times=2)
        await one.cancel(turn_id)
        await one.until_stored(turn_id, "CANCELLATION_REQUESTED")
        gate.set()
        rests = await driving
        record = await one.record(turn_id)

    assert rests
    assert record.turn.status is Status.CANCELLED
    outcomes = [result.outcome for result in record.results.values()]
    assert outcomes == [Outcome.COMPLETED, Outcome.COMPLETED, Outcome.CANCELLED]
    assert len(model.requests) == 1
    check_history(record)


# --- Losing the claim ----------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [calls("pay"), says("Done.")], ids=["calls", "text"])
async def test_case_49_an_answer_that_comes_after_the_claim_is_lost_is_discarded(
    database_dsn: str, settings: Settings, answer: ModelAnswer
) -> None:
    """Even by a worker of the same name: the epoch is the fence, not the name (cases 48, 49)."""
    gate, entered = asyncio.Event(), list[str]()

    @tool(effect="writes")
    def pay() -> str:
        entered.append("pay")
        return "paid"

    model = Model([[gate, answer], [says("Done by the second.")]])
    async with bench(database_dsn, settings, model, [pay]) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await model.asked.wait()
        await let_claims_run_out(one.dsn)
        second = await one.claim()
        before = await one.record(turn_id)
        gate.set()
        with pytest.raises(ClaimLost):
            await driving
        after = await one.record(turn_id)
        await one.drive(second)
        record = await one.record(turn_id)

    assert after == before
    assert entered == []
    assert record.turn.status is Status.COMPLETED
    check_fold(record)
    check_events(record.journal, record.turn)


async def test_tools_of_a_worker_that_lost_its_claim_are_not_followed_by_anything(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[calls("pay")], [says("I shall check.")]])
    async with bench(database_dsn, settings, model, [gated("pay", gate, "writes")]) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await one.until_stored(turn_id, "TOOL_STARTED")
        await let_claims_run_out(one.dsn)
        await one.drive(await one.claim())
        gate.set()
        # It finds that out by its next commit, or hears before that the turn has gone on.
        with suppress(ClaimLost):
            await driving
        record = await one.record(turn_id)

    assert record.turn.status is Status.COMPLETED
    assert [result.outcome for result in record.results.values()] == [Outcome.UNKNOWN]
    assert len(model.requests) == 2
