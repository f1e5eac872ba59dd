"""Who drives a turn: one worker at a time, the right one, and never for longer than its claim."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest

from app.agents import Agent, Catalog
from app.ports import ClaimedTurn, ClaimQueue, Renewals, StoreUnavailable
from app.settings import Settings
from app.store.claims import PostgresClaims
from app.store.pool import connected
from app.tools import tool
from app.turn.ids import TurnId
from app.turn.status import Status
from app.turn.transcript import AssistantMessage
from app.workers.loop import Worker, WorkerSettings
from tests.support.bench import Bench, bench
from tests.support.deaths import let_claims_run_out
from tests.support.models import Model, calls, says
from tests.support.polling import eventually
from tests.support.postgres import query, with_database

LEASE_SECONDS = 0.3
QUICK = WorkerSettings(
    concurrency=4,
    lease_seconds=LEASE_SECONDS,
    poll_seconds=0.05,
    renew_seconds=0.05,
    give_up_seconds=0.2,
)


@asynccontextmanager
async def working(worker: Worker) -> AsyncGenerator[asyncio.Event]:
    """The worker works until the end of the block, and must then stop in order."""
    stopping = asyncio.Event()
    task = asyncio.create_task(worker.run(stopping))
    try:
        yield stopping
    finally:
        stopping.set()
        async with asyncio.timeout(10):
            await task


@asynccontextmanager
async def claims(
    dsn: str, *, lease_seconds: float = LEASE_SECONDS
) -> AsyncGenerator[PostgresClaims]:
    async with connected(dsn, size=2) as database:
        yield PostgresClaims(database, lease_seconds=lease_seconds)


def a_worker(
    one: Bench,
    queue: ClaimQueue,
    *,
    name: str = "a worker",
    settings: WorkerSettings = QUICK,
    catalog: Catalog | None = None,
) -> Worker:
    """A worker of the bench's process."""
    known = catalog or one.worker.catalog
    driver = replace(one.driver, catalog=known)
    return Worker(
        name=name,
        settings=settings,
        claims=queue,
        renewals=partial(renewals, one.dsn, queue),
        wakeups=one.services.wakeups,
        catalog=known,
        driver=driver,
        sweeper=one.worker.sweeper,
    )


@asynccontextmanager
async def renewals(dsn: str, queue: ClaimQueue) -> AsyncGenerator[Renewals]:
    """What the heartbeat opens in its thread; as faulty as the worker's queue."""
    async with claims(dsn) as own:
        yield RenewingThrough(own, queue) if isinstance(queue, FaultyRenewals) else own


async def ended(one: Bench, turn_id: TurnId) -> bool:
    turn = await one.services.turns.load(turn_id)
    assert turn is not None
    return turn.is_terminal


async def test_case_52_renewals_keep_one_owner_for_as_long_as_the_call_lasts(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[gate, says("Done.")]])
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        owner, rival = a_worker(one, queue), a_worker(one, queue, name="a rival")
        turn_id = await one.post()
        async with working(owner), working(rival):
            await model.asked.wait()
            await eventually(lambda: outlives_three_leases(one))
            gate.set()
            await eventually(lambda: ended(one, turn_id))

        assert await query(one.dsn, "SELECT claim_epoch FROM turns") == 1
        assert len(model.requests) == 1


async def test_a_tool_that_blocks_the_event_loop_does_not_cost_its_turn_the_claim(
    database_dsn: str, settings: Settings
) -> None:
    left: list[timedelta] = []

    @tool(effect="writes")
    async def pay() -> str:
        """Block everything beside it for three leases, then look at the claim."""
        time.sleep(3 * LEASE_SECONDS)  # noqa: ASYNC251 - the very fault this is about
        left.append(_seen_from_outside(database_dsn))
        return "paid"

    model = Model([[calls("pay")], [says("Done.")]])
    async with (
        bench(database_dsn, settings, model, [pay]) as one,
        claims(one.dsn) as queue,
        working(a_worker(one, queue)),
    ):
        turn_id = await one.post()
        await eventually(lambda: ended(one, turn_id))

    assert left[0] > timedelta()


def _seen_from_outside(dsn: str) -> timedelta:
    """What is left of the claim, asked by a thread while the event loop is blocked."""
    asked = "SELECT claimed_until - clock_timestamp() FROM turns"
    with ThreadPoolExecutor(max_workers=1) as other:
        found: timedelta = other.submit(lambda: asyncio.run(query(dsn, asked))).result()
    return found


async def outlives_three_leases(one: Bench) -> bool:
    """Whether the claim, taken right behind the message, reaches so far by now."""
    age: timedelta = await query(one.dsn, "SELECT max(claimed_until - created_at) FROM turns")
    return age.total_seconds() > 4 * LEASE_SECONDS


async def test_an_unknown_version_of_an_agent_is_left_to_those_who_know_it(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("Done.")], [says("Done.")]])
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        foreign = await one.post("ses_foreign")
        other = Catalog([Agent(id="bench", instructions="Another.", version="2")])
        own = await replace(one, services=replace(one.services, catalog=other)).post("ses_own")
        async with working(a_worker(one, queue, catalog=other)):
            await eventually(lambda: ended(one, own))
        untouched = await one.record(foreign)
        assert await query(one.dsn, "SELECT min(claim_epoch) FROM turns") == 0
        async with working(a_worker(one, queue)):
            await eventually(lambda: ended(one, foreign))

    assert untouched.turn.status is Status.READY


async def test_case_56_a_turn_that_this_version_cannot_read_does_not_stop_the_others(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("Done.")]])
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        await one.post("ses_strange")
        await query(
            one.dsn,
            """UPDATE turns SET body = '{"state": {"kind": "of a newer version"}}'""",
        )
        plain = await one.post("ses_plain")
        async with working(a_worker(one, queue)):
            await eventually(lambda: ended(one, plain))
        left_alone = await query(one.dsn, "SELECT count(*) FROM turns WHERE status = 'READY'")

    assert left_alone == 1


async def test_an_answer_that_comes_while_the_database_takes_no_writes_is_kept(
    database_dsn: str, settings: Settings
) -> None:
    """As after a failover, when the address leads to a replica for a while."""
    gate = asyncio.Event()
    model = Model([[gate, says("Done.")]])
    patient = replace(QUICK, renew_seconds=5, give_up_seconds=10)
    async with (
        bench(database_dsn, settings, model) as one,
        claims(one.dsn, lease_seconds=15) as queue,
        working(a_worker(one, queue, settings=patient)),
    ):
        turn_id = await one.post()
        await model.asked.wait()
        await set_read_only(one.dsn, "on")
        gate.set()
        await eventually(lambda: was_tried(one.dsn, "SKIP LOCKED"))
        await eventually(lambda: was_tried(one.dsn, "FROM turn_events"))  # did it happen?
        await set_read_only(one.dsn, "off")
        await eventually(lambda: ended(one, turn_id))

    assert len(model.requests) == 1


async def set_read_only(dsn: str, value: str) -> None:
    """For all connections made from now on; those that stand are cut."""
    database = urlsplit(dsn).path.removeprefix("/")
    elsewhere = with_database(dsn, "postgres")
    await query(
        elsewhere, f'ALTER DATABASE "{database}" SET default_transaction_read_only = {value}'
    )
    await query(
        elsewhere,
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "  # noqa: S608
        f"WHERE datname = '{database}'",
    )


async def was_tried(dsn: str, part: str) -> bool:
    """Whether a statement with that part was the last one of some connection."""
    found: bool = await query(
        dsn,
        f"SELECT bool_or(query LIKE '%{part}%') FROM pg_stat_activity "  # noqa: S608 - a constant
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    return found


async def test_a_worker_that_takes_its_own_turn_again_drives_it_once_and_keeps_it(
    database_dsn: str, settings: Settings
) -> None:
    """When its claim has run out unnoticed, as after the machine has slept."""
    gate = asyncio.Event()
    model = Model([[gate, says("Lost.")], [gate, says("Done.")]])
    async with (
        bench(database_dsn, settings, model) as one,
        claims(one.dsn, lease_seconds=3) as queue,
    ):
        asleep = FaultyRenewals(queue, "not sent")
        turn_id = await one.post()
        async with working(a_worker(one, asleep)):
            await model.asked.wait()
            await let_claims_run_out(one.dsn)
            await eventually(lambda: is_asked(model, 2))
            await model.left.wait()
            asleep.fault = None
            await eventually(lambda: is_renewed(asleep, {turn_id: 2}))
            gate.set()
            await eventually(lambda: ended(one, turn_id))
        record = await one.record(turn_id)

    assert [m.text for m in record.transcript if isinstance(m, AssistantMessage)] == ["Done."]
    assert record.turn.counters.model_attempts == 2


@pytest.mark.parametrize("fault", ["refused", "unanswered"])
async def test_an_owner_that_cannot_renew_lets_its_turns_go_before_the_lease_is_over(
    database_dsn: str, settings: Settings, fault: Literal["refused", "unanswered"]
) -> None:
    never = asyncio.Event()
    model = Model([[never], [says("Done.")]])
    async with (
        bench(database_dsn, settings, model) as one,
        claims(one.dsn, lease_seconds=3) as queue,
    ):
        cut_off = FaultyRenewals(queue, fault)
        await one.post()
        async with working(a_worker(one, cut_off)):
            await model.left.wait()
            left: timedelta = await query(
                one.dsn, "SELECT claimed_until - clock_timestamp() FROM turns"
            )

    assert left > timedelta()


async def test_no_more_turns_are_driven_at_once_than_the_settings_say(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[gate, says("Done.")]] * 5)
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        turn_ids = [await one.post(f"ses_{n}") for n in range(5)]
        narrow = replace(QUICK, concurrency=2, poll_seconds=60)
        async with working(a_worker(one, queue, settings=narrow)):
            await eventually(lambda: is_asked(model, 2))
            claimed = "SELECT count(*) FROM turns WHERE claimed_by IS NOT NULL"
            assert await query(one.dsn, claimed) == 2
            gate.set()
            for turn_id in turn_ids:
                await eventually(partial(ended, one, turn_id))

    assert len(model.requests) == 5


@dataclass(slots=True)
class Through:
    """Another queue, for somebody to stand in front of it."""

    claims: ClaimQueue

    async def claim(self, worker: str, **terms: Any) -> Sequence[ClaimedTurn]:  # noqa: ANN401
        return await self.claims.claim(worker, **terms)

    async def renew(self, worker: str, claims: Mapping[TurnId, int]) -> frozenset[TurnId]:
        return await self.claims.renew(worker, claims)

    async def release(self, worker: str, claims: Mapping[TurnId, int]) -> None:
        await self.claims.release(worker, claims)

    async def release_strays(
        self, worker: str, turn_ids: AbstractSet[TurnId]
    ) -> AbstractSet[TurnId]:
        return await self.claims.release_strays(worker, turn_ids)


@dataclass(slots=True)
class FaultyRenewals(Through):
    """Claims whose renewals do not reach the database, or not in time."""

    fault: Literal["not sent", "refused", "unanswered"] | None
    renewed: list[Mapping[TurnId, int]] = field(default_factory=list[Mapping[TurnId, int]])


@dataclass(slots=True)
class RenewingThrough:
    """Renewals over a connection of their own, with the faults of another."""

    own: Renewals
    faults: FaultyRenewals

    async def renew(self, worker: str, claims: Mapping[TurnId, int]) -> frozenset[TurnId]:
        if self.faults.fault == "refused":
            raise StoreUnavailable
        if self.faults.fault == "unanswered":
            await asyncio.Event().wait()
        if self.faults.fault == "not sent":
            return frozenset(claims)
        self.faults.renewed.append(claims)
        return await self.own.renew(worker, claims)


async def is_asked(model: Model, times: int) -> bool:
    return len(model.requests) == times


async def is_renewed(claims: FaultyRenewals, wanted: Mapping[TurnId, int]) -> bool:
    return wanted in claims.renewed
