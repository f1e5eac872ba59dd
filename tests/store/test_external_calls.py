"""Executors that ask for calls: each gets calls of its own, for as long as it said."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.ports import ExternalClaim, Scope
from app.store.external_calls import PostgresExternalCalls
from app.store.pool import Database
from app.turn.ids import ActorId, TenantId
from app.turn.transcript import Outcome
from tests.store.stored import ALL, TENANT, Stored, an_entry
from tests.store.waiting import (
    ARGUMENTS,
    a_form,
    a_waiting_turn,
    an_approval,
    an_errand,
    happened,
    put_aside,
    returned,
    within,
)
from tests.support.turns import NOON

WANTED = ExternalClaim(executor="van 7", tools=(), limit=10, lease_seconds=60)
CLAIM = an_entry("CLAIM_EXTERNAL_CALLS")


def nothing_kept(_claimed: object) -> None:
    """The request has no key."""


async def claimed(database: Database, wanted: ExternalClaim = WANTED) -> list[tuple[str, str]]:
    found = await PostgresExternalCalls(database).claim(ALL, wanted, CLAIM, nothing_kept)
    return [(call.turn_id, call.call_id) for call in found]


async def let_leases_run_out(database: Database) -> None:
    await database.execute("UPDATE external_calls SET claimed_until = clock_timestamp()")


async def test_a_claim_takes_the_oldest_calls_and_nobody_gets_them_again(
    database: Database,
) -> None:
    stored = Stored(database)
    later = NOON + timedelta(hours=1)
    await a_waiting_turn(stored, an_errand(since=later), an_approval(), turn_id="t1")
    await a_waiting_turn(stored, an_errand(), put_aside(a_form()), an_errand(), turn_id="t2")

    assert await claimed(database, replace(WANTED, limit=2)) == [("t2", "A"), ("t2", "C")]
    assert await claimed(database) == [("t1", "A")]
    assert await claimed(database) == []


async def test_two_executors_that_ask_at_once_never_get_the_same_call(database: Database) -> None:
    stored = Stored(database)
    for n in range(4):
        await a_waiting_turn(stored, *[an_errand()] * 5, turn_id=f"t{n}")

    found = await asyncio.gather(
        *(claimed(database, replace(WANTED, executor=f"van {n}", limit=2)) for n in range(16))
    )

    taken = [call for each in found for call in each]
    assert len(taken) == len(set(taken)) == 20


async def test_a_call_is_free_again_when_the_lease_is_over(database: Database) -> None:
    stored, calls = Stored(database), PostgresExternalCalls(database)
    await a_waiting_turn(stored, an_errand())
    (first,) = await calls.claim(ALL, WANTED, CLAIM, nothing_kept)
    await let_leases_run_out(database)

    (again,) = await calls.claim(ALL, replace(WANTED, executor="van 8"), CLAIM, nothing_kept)

    assert (first.claims, first.claimed_by) == (1, "van 7")
    assert (again.claims, again.claimed_by) == (2, "van 8")
    assert again.arguments == ARGUMENTS
    assert again.claimed_until is not None


async def test_calls_that_take_no_result_any_more_are_given_to_nobody(database: Database) -> None:
    stored = Stored(database)
    now = datetime.now(UTC)
    await a_waiting_turn(stored, an_errand(since=now, policy=within(-1)), turn_id="expired")
    await a_waiting_turn(stored, an_errand(since=now, policy=within(60)), turn_id="in time")
    done = await a_waiting_turn(stored, an_errand(), turn_id="done")
    await happened(stored, done, *returned(done, "A", Outcome.COMPLETED))

    assert await claimed(database) == [("in time", "A")]


async def test_an_executor_gets_calls_of_its_own_tools_and_scope_only(database: Database) -> None:
    stored, calls = Stored(database), PostgresExternalCalls(database)
    await a_waiting_turn(stored, an_errand())

    for scope in (
        Scope(tenant_id=TENANT, owner_id=ActorId("bob")),
        Scope(tenant_id=TenantId("other"), owner_id=None),
    ):
        assert await calls.claim(scope, WANTED, CLAIM, nothing_kept) == []
        assert await calls.page(scope, status=None, tools=(), after=None, limit=10) == []
    assert await claimed(database, replace(WANTED, tools=("another",))) == []
    assert await claimed(database, replace(WANTED, tools=("another", "tool_external"))) != []


async def test_a_claim_leaves_one_line_in_the_audit_for_each_call_it_takes(
    database: Database,
) -> None:
    stored = Stored(database)
    await a_waiting_turn(stored, an_errand(), an_errand())

    await claimed(database)
    await claimed(database)

    rows = await database.rows(
        "SELECT actor_id, outcome, turn_id, conversation_id, call_id FROM audit WHERE action = $1",
        CLAIM.action,
    )
    assert [tuple(row.values()) for row in rows] == [
        ("ann", "accepted", "t1", "c-t1", "A"),
        ("ann", "accepted", "t1", "c-t1", "B"),
    ]


async def test_the_list_is_by_age_and_goes_on_behind_the_last_of_a_page(
    database: Database,
) -> None:
    stored, calls = Stored(database), PostgresExternalCalls(database)
    turn = await a_waiting_turn(stored, an_errand(), an_errand(), an_errand())
    await happened(stored, turn, *returned(turn, "B", Outcome.ERROR))

    first = await calls.page(ALL, status="open", tools=(), after=None, limit=1)
    place = (first[0].requested_at, first[0].turn_id, first[0].call_id)
    rest = await calls.page(ALL, status="open", tools=(), after=place, limit=9)
    failed = await calls.page(ALL, status="failed", tools=("tool_external",), after=None, limit=9)

    assert [call.call_id for call in (*first, *rest, *failed)] == ["A", "C", "B"]
