"""What a turn costs in the database: statements, each a transaction, and bytes of its log.

The figures are exact or nearly so on every machine; how long it takes is for the benchmarks to say.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise
from secrets import token_hex
from statistics import median
from typing import Any

import pytest

from app.ports import ModelEvent, ModelRequest, ResolvedModel
from app.settings import Settings
from app.store.pool import Database, connected
from app.tools import tool
from app.turn.agent import Limits
from app.turn.status import Status
from tests.support.bench import Bench, bench
from tests.support.models import Model, calls, says
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.workers.test_handing_over import QUOTA, beside

ROUNDS = 205
MANY = Limits(max_iterations=1_000, max_steps=10_000, parallel_tools=10)
WRITTEN = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8"


_IS_WATCHED: ContextVar[bool] = ContextVar("is_watched", default=False)
"""Whether a statement is asked for by what a test does, and by no chore of the process."""


@dataclass(slots=True)
class Counter:
    """Stands in front of a pool and counts what goes through for the sake of turns."""

    pool: Any
    statements: list[str] = field(default_factory=list[str])

    async def fetch(self, statement: str, *arguments: object) -> Any:  # noqa: ANN401
        return await self._counted("fetch", statement, arguments)

    async def fetchrow(self, statement: str, *arguments: object) -> Any:  # noqa: ANN401
        return await self._counted("fetchrow", statement, arguments)

    async def fetchval(self, statement: str, *arguments: object) -> Any:  # noqa: ANN401
        return await self._counted("fetchval", statement, arguments)

    async def execute(self, statement: str, *arguments: object) -> None:
        await self._counted("execute", statement, arguments)

    async def _counted(self, method: str, statement: str, arguments: tuple[object, ...]) -> Any:  # noqa: ANN401
        if _IS_WATCHED.get():
            self.statements.append(statement)
        return await getattr(self.pool, method)(statement, *arguments)


@dataclass(slots=True)
class Metered:
    """A model that reads the meters whenever it is asked."""

    model: Model
    observer: Database
    counter: Counter | None = None
    bytes_written: list[float] = field(default_factory=list[float])
    statements: list[int] = field(default_factory=list[int])

    def resolve(self, model: str | None) -> ResolvedModel:
        return ResolvedModel(client=self, model=model or "any", provider="a test")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.bytes_written.append(await self.observer.value(WRITTEN))
        self.statements.append(len(self.counter.statements) if self.counter else 0)
        async for event in self.model.stream(request):
            yield event

    def bytes_per_round(self, around: int) -> float:
        """The median over some rounds: one of them may have met a checkpoint."""
        read = self.bytes_written[around - 5 : around + 6]
        return median(after - before for before, after in pairwise(read))


@asynccontextmanager
async def metered(
    dsn: str, settings: Settings, rounds: Sequence[Any], result: str = "x"
) -> AsyncGenerator[tuple[Bench, Metered, Counter]]:
    """A bench whose model plays these rounds; its tool `look` gives `result`."""

    async def look() -> str:
        return result

    tools = [tool(effect="reads", name=f"look{n or ''}")(look) for n in range(10)]
    async with connected(dsn, size=1) as observer:
        meter: Any = Metered(Model(rounds), observer)
        async with bench(dsn, settings, meter, tools, limits=MANY) as one:
            database: Any = one.services.turns
            meter.counter = database._database._pool = Counter(database._database._pool)
            _IS_WATCHED.set(True)
            yield one, meter, meter.counter
            _IS_WATCHED.set(False)


async def test_a_turn_of_five_rounds_is_driven_by_fourteen_statements(
    database_dsn: str, settings: Settings
) -> None:
    rounds = [[calls("look")]] * 5 + [[says("Done.")]]
    async with metered(database_dsn, settings, rounds) as (one, meter, counter):
        await one.post()
        posting, counter.statements = counter.statements, []
        await one.run()

    assert len(posting) == 2  # what there is of the conversation; the turn
    assert len(counter.statements) == 14  # the claim, the history, twelve commits
    assert meter.statements == [3, 5, 7, 9, 11, 13]  # two for each round


async def test_a_turn_that_is_handed_over_calls_its_model_behind_the_commit_that_opens_it(
    database_dsn: str, settings: Settings
) -> None:
    rounds = [[calls("look")]] * 5 + [[says("Done.")]]
    async with (
        metered(database_dsn, settings, rounds) as (one, meter, counter),
        beside(one) as here,
    ):
        counter.statements.clear()
        turn_id = await here.bench.post()
        await here.until(turn_id, Status.COMPLETED)

    assert meter.statements == [2, 4, 6, 8, 10, 12]  # the look at the conversation; the turn


async def test_a_turn_that_goes_on_calls_its_model_after_three_statements(
    database_dsn: str, settings: Settings
) -> None:
    rounds = [[QUOTA], [says("Done.")]]
    async with (
        metered(database_dsn, settings, rounds) as (one, meter, counter),
        beside(one) as here,
    ):
        turn_id = await here.bench.post()
        await here.until(turn_id, Status.WAITING_FOR_MODEL)
        counter.statements.clear()
        await here.goes_on(turn_id)
        await here.until(turn_id, Status.COMPLETED)

    assert meter.statements[1:] == [3]  # the turn as it is, as it goes on, its history


async def test_ten_tools_that_end_together_cost_two_commits(
    database_dsn: str, settings: Settings
) -> None:
    asked = calls("look", *(f"look{n}" for n in range(1, 10)))
    async with metered(database_dsn, settings, [[asked], [says("Done.")]]) as (one, _, counter):
        await one.post()
        held = await one.claim()
        counter.statements.clear()
        await one.drive(held)

    assert len(counter.statements) == 1 + 1 + 2 + 1  # the history, begin, round, end


@pytest.fixture
async def undisturbed(database_dsn: str) -> AsyncGenerator[None]:
    """Nobody tidies up behind other tests meanwhile: that is written to the same log."""

    async def is_quiet() -> bool:
        at_work = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum w%'"
        return not await query(database_dsn, at_work)

    await query(database_dsn, "ALTER SYSTEM SET autovacuum = off")
    await query(database_dsn, "SELECT pg_reload_conf()")
    await eventually(is_quiet, timeout_seconds=60)
    yield
    await query(database_dsn, "ALTER SYSTEM RESET autovacuum")
    await query(database_dsn, "SELECT pg_reload_conf()")


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(("result_bytes", "at_most"), [(64, 3_200), (4_096, 8_000)])
async def test_a_round_writes_as_little_at_the_end_of_a_long_turn_as_at_its_beginning(
    database_dsn: str, settings: Settings, result_bytes: int, at_most: int
) -> None:
    rounds = [[calls("look")]] * ROUNDS + [[says("Done.")]]
    result = token_hex(result_bytes // 2)  # which does not get smaller by being compressed
    async with metered(database_dsn, settings, rounds, result) as (one, meter, _):
        await one.post()
        await one.run()

    early, late = meter.bytes_per_round(20), meter.bytes_per_round(200)
    assert late <= at_most
    assert late <= 1.1 * early
    assert {b - a for a, b in pairwise(meter.statements)} == {2}
