"""The worker asks the probes of lost calls before it says what becomes of them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from app.agents import Hooks
from app.ports import Tool
from app.runner import probing, tasks
from app.settings import Settings
from app.tools import Done, NotDone, tool
from app.turn.ids import TurnId
from app.turn.inputs import Cancel
from app.turn.status import Status
from app.turn.transcript import Outcome
from tests.support.bench import Bench, bench
from tests.support.deaths import let_claims_run_out
from tests.support.models import Model, calls, says


class Bank:
    """A tool that never returns, and a probe that says what a test has it say."""

    def __init__(self, answer: Done | NotDone | Exception | None = None) -> None:
        self.answer = answer
        self.entered, self.asked_for = asyncio.Event(), asyncio.Event()
        self.may_say = asyncio.Event()
        self.may_say.set()
        self.keys: list[str] = []
        self.is_deaf = False
        """Whether the probe goes on when it is told to end."""

    def tool(self) -> Tool:
        async def probe(key: str) -> Done | NotDone | None:
            self.keys.append(key)
            self.asked_for.set()
            await self._until_it_may_say()
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        @tool(effect="writes", probe=probe)
        async def pay() -> str:
            if not self.entered.is_set():
                self.entered.set()
                await asyncio.Event().wait()
            return "paid"

        return pay

    async def _until_it_may_say(self) -> None:
        while not self.may_say.is_set():
            try:
                await self.may_say.wait()
            except asyncio.CancelledError:
                if not self.is_deaf:
                    raise


@asynccontextmanager
async def lost(
    dsn: str, settings: Settings, bank: Bank, hooks: Hooks | None = None
) -> AsyncGenerator[tuple[Bench, TurnId]]:
    """A turn whose worker has died while it paid."""
    model = Model([[calls("pay")], [says("Done.")]])
    async with bench(dsn, settings, model, [bank.tool()], hooks=hooks) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.drive(await one.claim()))
        await bank.entered.wait()
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        await let_claims_run_out(one.dsn)
        yield one, turn_id


@pytest.mark.parametrize(
    ("answer", "content", "attempts"),
    [
        (Done("T-7"), "T-7", 1),
        (NotDone("no"), "paid", 2),
        (None, "may or may not", 1),
        (OSError("no bank"), "may or may not", 1),
    ],
)
async def test_the_probe_is_asked_before_the_rule_is_followed(
    database_dsn: str,
    settings: Settings,
    answer: Done | NotDone | Exception | None,
    content: str,
    attempts: int,
) -> None:
    bank = Bank(answer)
    async with lost(database_dsn, settings, bank) as (one, turn_id):
        await one.run()
        record = await one.checked(turn_id)

    (result,) = record.results.values()
    assert bank.keys == [f"{turn_id}:{result.call_id}"]
    assert content in result.content
    assert record.types.count("TOOL_STARTED") == attempts
    assert record.turn.status is Status.COMPLETED


async def test_hooks_that_come_first_do_not_keep_the_probe_from_being_asked(
    database_dsn: str, settings: Settings
) -> None:
    bank = Bank(Done("T-7"))
    async with lost(database_dsn, settings, bank, Hooks()) as (one, turn_id):
        await one.run()
        record = await one.checked(turn_id)

    assert [result.content for result in record.results.values()] == ["T-7"]


async def test_a_probe_that_takes_too_long_has_said_nothing(
    database_dsn: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PROBE_SECONDS", 0.05)
    bank = Bank(Done("T-7"))
    bank.may_say.clear()
    async with lost(database_dsn, settings, bank) as (one, turn_id):
        await one.run()
        record = await one.checked(turn_id)

    assert [result.outcome for result in record.results.values()] == [Outcome.UNKNOWN]


async def test_a_probe_that_cannot_be_stopped_has_said_nothing_and_holds_nobody_up(
    database_dsn: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PROBE_SECONDS", 0.05)
    monkeypatch.setattr(probing, "_DEAF_SECONDS", 0.05)
    bank = Bank(Done("T-7"))
    bank.may_say.clear()
    bank.is_deaf = True
    async with lost(database_dsn, settings, bank) as (one, turn_id):
        async with asyncio.timeout(5):
            await one.run()
        record = await one.checked(turn_id)
        bank.may_say.set()

    assert [result.outcome for result in record.results.values()] == [Outcome.UNKNOWN]
    assert record.turn.status is Status.COMPLETED


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_a_cancellation_does_not_wait_for_a_probe(
    database_dsn: str, settings: Settings, monkeypatch: pytest.MonkeyPatch, *, is_deaf: bool
) -> None:
    monkeypatch.setattr(tasks, "DEAF_SECONDS", 0.05)
    bank = Bank(Done("T-7"))
    bank.is_deaf = is_deaf
    bank.may_say.clear()
    async with lost(database_dsn, settings, bank) as (one, turn_id):
        driving = asyncio.create_task(one.run())
        await bank.asked_for.wait()
        await one.command(turn_id, Cancel())
        async with asyncio.timeout(5):
            await driving
        record = await one.checked(turn_id)
        bank.may_say.set()

    assert record.turn.status is Status.CANCELLED
    assert [result.outcome for result in record.results.values()] == [Outcome.UNKNOWN]


async def test_a_worker_that_stops_leaves_the_probe_to_the_next(
    database_dsn: str, settings: Settings
) -> None:
    bank, stopping = Bank(Done("T-7")), asyncio.Event()
    bank.may_say.clear()
    async with lost(database_dsn, settings, bank) as (one, turn_id):
        driving = asyncio.create_task(one.drive(await one.claim(), stopping))
        await bank.asked_for.wait()
        stopping.set()
        assert not await driving
        between = await one.record(turn_id)
        bank.may_say.set()
        await let_claims_run_out(one.dsn)
        await one.run()
        record = await one.checked(turn_id)

    assert "STEP_RECOVERED" not in between.types
    assert [result.content for result in record.results.values()] == ["T-7"]
