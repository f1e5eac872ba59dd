"""What was reported of leases elsewhere: two owners of one job, none, or the wrong one.

The numbers are those of the public reports that these stories were made from. The workers are of
one process and their leases short: what counts is who holds which claim, not which process.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import override

from app.ports import ClaimedTurn, ModelAnswer, StoreUnavailable, Tool
from app.ports.fault_points import watched_by
from app.settings import Settings
from app.tools import tool
from app.turn.ids import TurnId
from app.turn.status import Status
from app.turn.transcript import Outcome
from tests.support.bench import Bench, bench
from tests.support.deaths import let_claims_run_out
from tests.support.models import Model, calls, says
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.workers.test_claiming import (
    QUICK,
    FaultyRenewals,
    Through,
    a_worker,
    claims,
    ended,
    outlives_three_leases,
    set_read_only,
    was_tried,
    working,
)

EPOCHS = "SELECT max(claim_epoch) FROM turns"


@dataclass(slots=True)
class Book:
    """A tool that pays, slowly if it is told to, and what it has paid."""

    gate: asyncio.Event | None = None
    paid: list[str] = field(default_factory=list[str])

    def tool(self) -> Tool:
        @tool(effect="writes")
        async def pay() -> str:
            """Pay."""
            self.paid.append("pay")
            if self.gate is not None:
                await self.gate.wait()
            return "paid"

        return pay

    async def is_entered(self, times: int = 1) -> bool:
        return len(self.paid) >= times


async def test_scenario_028_a_tool_that_takes_many_leases_has_one_owner_and_runs_once(
    database_dsn: str, settings: Settings
) -> None:
    book = Book(gate := asyncio.Event())
    model = Model([[calls("pay")], [says("Done.")]])
    async with (
        bench(database_dsn, settings, model, [book.tool()]) as one,
        claims(one.dsn) as queue,
        working(a_worker(one, queue)),
        working(a_worker(one, queue, name="a rival")),
    ):
        turn_id = await one.post()
        await eventually(book.is_entered)
        await eventually(lambda: outlives_three_leases(one))
        gate.set()
        await eventually(lambda: ended(one, turn_id))
        await one.checked(turn_id)

        assert await query(one.dsn, EPOCHS) == 1
    assert (len(book.paid), len(model.requests)) == (1, 2)


async def test_scenario_029_an_owner_that_is_cut_off_starts_nothing_beside_the_new_one(
    database_dsn: str, settings: Settings
) -> None:
    """In its second round its renewals fail; what it does then is let go, and nothing is twice."""
    book = Book(gate := asyncio.Event())
    never = asyncio.Event()
    model = Model([[calls("pay")], [never], [calls("pay")], [says("Done.")]])
    async with (
        bench(database_dsn, settings, model, [book.tool()]) as one,
        claims(one.dsn, lease_seconds=1) as queue,
    ):
        cut_off = FaultyRenewals(queue, None)
        turn_id = await one.post()
        async with working(a_worker(one, cut_off, name="cut off")):
            await eventually(book.is_entered)
            gate.set()
            await eventually(lambda: is_asked(model, 2))
            cut_off.fault = "refused"
            await model.left.wait()
            async with working(a_worker(one, queue, name="the other")):
                await eventually(lambda: ended(one, turn_id))
            cut_off.fault = None
        record = await one.checked(turn_id)

    assert record.turn.status is Status.COMPLETED
    assert [each.outcome for each in record.results.values()] == [Outcome.COMPLETED] * 2
    assert (len(book.paid), len(model.requests)) == (2, 4)


async def test_scenario_031_workers_that_start_and_stop_leave_what_others_run_alone(
    database_dsn: str, settings: Settings
) -> None:
    book = Book(gate := asyncio.Event())
    model = Model([[calls("pay")], [says("Done.")]])
    async with (
        bench(database_dsn, settings, model, [book.tool()]) as one,
        claims(one.dsn, lease_seconds=15) as queue,
        working(a_worker(one, queue)),
    ):
        turn_id = await one.post()
        await eventually(book.is_entered)
        async with AsyncExitStack() as others:
            for number in range(2, 6):
                looking = Looks(queue)
                await others.enter_async_context(
                    working(a_worker(one, looking, name=f"worker {number}"))
                )
                await eventually(looking.have_been)
        gate.set()
        await eventually(lambda: ended(one, turn_id))

        assert await query(one.dsn, EPOCHS) == 1
    assert (len(book.paid), len(model.requests)) == (1, 2)


@dataclass(slots=True)
class Looks(Through):
    """Claims that count how often a worker has looked for some, and how often in vain."""

    found: list[Sequence[ClaimedTurn]] = field(default_factory=list[Sequence[ClaimedTurn]])
    failed: int = 0

    @override
    async def claim(self, worker: str, **terms: Any) -> Sequence[ClaimedTurn]:
        try:
            found = await self.claims.claim(worker, **terms)
        except StoreUnavailable:
            self.failed += 1
            raise
        self.found.append(found)
        return found

    async def have_been(self) -> bool:
        return bool(self.found)

    async def have_failed(self) -> bool:
        return bool(self.failed)

    @property
    def turns(self) -> list[TurnId]:
        return [held.turn.identity.turn_id for some in self.found for held in some]


# --- Many turns whose owners are gone -------------------------------------------------------------


async def orphans(one: Bench, model: Model, number: int) -> list[TurnId]:
    """So many turns whose worker died while their models were asked; their leases have passed."""
    asked = len(model.requests)
    turn_ids = [await one.post(f"ses_{asked + n}") for n in range(number)]
    held = await claimed(one, number)
    driving = [asyncio.create_task(one.drive(each)) for each in held]
    await eventually(lambda: is_asked(model, asked + number))
    for task in driving:
        task.cancel()
    await asyncio.gather(*driving, return_exceptions=True)
    await let_claims_run_out(one.dsn)
    return turn_ids


async def claimed(one: Bench, number: int) -> Sequence[ClaimedTurn]:
    worker = one.worker
    return await worker.claims.claim("a dead one", limit=number, versions=worker.catalog.versions())


async def is_asked(model: Model, times: int) -> bool:
    return len(model.requests) >= times


async def all_ended(one: Bench, turn_ids: Sequence[TurnId]) -> bool:
    return all([await ended(one, turn_id) for turn_id in turn_ids])


async def some_ended(one: Bench, number: int) -> bool:
    found: int = await query(one.dsn, "SELECT count(*) FROM turns WHERE status = 'COMPLETED'")
    return found >= number


async def test_scenario_035_every_turn_of_a_dead_owner_is_taken_up_and_no_other(
    database_dsn: str, settings: Settings
) -> None:
    """Rows that are damaged keep nobody waiting, and whoever is alive keeps what is its own."""
    never = asyncio.Event()
    model = Model([[never]] * 20 + [[says("Done.")]] * 20)
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        dead = await orphans(one, model, 20)
        damaged, living, rest = dead[:4], dead[4:6], dead[6:]
        for turn_id in damaged:
            await query(one.dsn, f"UPDATE turns SET body = '{{}}' WHERE turn_id = '{turn_id}'")  # noqa: S608
        held = ", ".join(f"'{turn_id}'" for turn_id in living)
        await query(
            one.dsn,
            "UPDATE turns SET claimed_by = 'somebody', "  # noqa: S608 - ids of ours
            f"claimed_until = now() + interval '1 hour' WHERE turn_id IN ({held})",
        )
        async with working(a_worker(one, queue)):
            await eventually(lambda: all_ended(one, rest))
        left = await query(
            one.dsn, "SELECT count(*) FROM turns WHERE status = 'RUNNING' AND claim_epoch = 1"
        )
        statuses = "SELECT string_agg(DISTINCT status, ',') FROM turns WHERE body = '{}'"
        of_the_damaged = await query(one.dsn, statuses)

    assert left == len(living)
    assert of_the_damaged == "RUNNING"
    assert len(model.requests) == 20 + len(rest)


async def test_scenario_037_a_recovery_outlives_an_absence_of_the_database(
    database_dsn: str, settings: Settings
) -> None:
    never = asyncio.Event()
    number = 20
    answers: list[list[asyncio.Event | ModelAnswer]] = [[never]] * number
    model = Model([*answers, *([[says("Done.")]] * 3 * number)])
    async with (
        bench(database_dsn, settings, model) as one,
        claims(one.dsn, lease_seconds=2) as queue,
    ):
        turn_ids = await orphans(one, model, number)
        looking = Looks(queue)
        patient = replace(QUICK, renew_seconds=0.5, give_up_seconds=1.5)
        async with working(a_worker(one, looking, settings=patient)):
            await eventually(lambda: some_ended(one, 5))
            await set_read_only(one.dsn, "on")
            await eventually(lambda: was_tried(one.dsn, "SKIP LOCKED"))
            await set_read_only(one.dsn, "off")
            await eventually(lambda: all_ended(one, turn_ids))
        for turn_id in turn_ids:
            record = await one.checked(turn_id)
            assert record.turn.status is Status.COMPLETED

    assert looking.failed, "the database was never away"


async def test_scenario_038_a_worker_that_comes_late_to_its_claim_finds_nothing_to_do(
    database_dsn: str, settings: Settings
) -> None:
    never = asyncio.Event()
    model = Model([[never]] * 10 + [[says("Done.")]] * 10)
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        turn_ids = await orphans(one, model, 10)
        first = FirstStands()
        late, quick = Looks(queue), Looks(queue)
        with watched_by(first.meets):
            async with working(a_worker(one, late, name="late")):
                await first.has_come.wait()
                async with working(a_worker(one, quick, name="quick")):
                    await eventually(lambda: all_ended(one, turn_ids))
                first.may_go.set()
                await eventually(late.have_been)

    assert late.turns == []
    assert Counter(quick.turns) == Counter(turn_ids)
    assert len(model.requests) == 20


@dataclass(slots=True)
class FirstStands:
    """The first who is about to claim stands there until it may go on."""

    has_come: asyncio.Event = field(default_factory=asyncio.Event)
    may_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def meets(self, point: str) -> None:
        if point == "claim.take.before" and not self.has_come.is_set():
            self.has_come.set()
            await self.may_go.wait()


async def test_scenario_124_two_rescuers_that_were_late_take_what_is_dead_by_then_and_no_more(
    database_dsn: str, settings: Settings
) -> None:
    never = asyncio.Event()
    model = Model([[never]] * 10 + [[says("Done.")]] * 8)
    async with (
        bench(database_dsn, settings, model) as one,
        claims(one.dsn, lease_seconds=60) as queue,
    ):
        turn_ids = await orphans(one, model, 10)
        stands = FirstStands()
        with watched_by(stands.meets):
            late = asyncio.create_task(claimed(one, 10))
            await stands.has_come.wait()
            moved = await queue.claim("alive", limit=6, versions=one.worker.catalog.versions())
            done = moved[:4]
            for each in done:
                await one.driver.drive(each, asyncio.Event())
            ids = [each.turn.identity.turn_id for each in moved]
            before = {turn_id: await one.record(turn_id) for turn_id in ids}
            stands.may_go.set()
            rescued = [*await late, *await claimed(one, 10)]

        taken = [each.turn.identity.turn_id for each in rescued]
        assert Counter(taken) == Counter(set(turn_ids) - before.keys())
        for turn_id, record in before.items():
            assert await one.record(turn_id) == record
        kept = {each.turn.identity.turn_id: each.claim.epoch for each in moved[4:]}
        assert await queue.renew("alive", kept) == set(kept)
