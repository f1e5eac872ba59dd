"""Tenants take turns: a queue of one is not in the way of another's, and a claim reads no queue."""

import re
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest

from app.store.claims import CLAIM, CLAIM_NAMED, PostgresClaims
from app.store.pool import Database
from tests.store.stored import VERSIONS, Stored

_TURNS = """
INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status, version,
                   body, created_at, updated_at, runnable_at, stop_requested, claim_epoch,
                   number)
SELECT $1 || n, $1, $1 || n, 'clerk', '1', $4, 9, t.body, now(), now(),
       now() + $5::interval + n * interval '1 microsecond', false, 0, 1
FROM (SELECT body FROM turns WHERE turn_id = 't1') t, generate_series($2::int, $3) n
"""


@pytest.fixture
async def stored(database: Database) -> AsyncGenerator[Stored]:
    """With a turn that has ended, whose body others are given."""
    stored = Stored(database)
    await stored.a_turn()
    await database.execute("UPDATE turns SET status = 'COMPLETED', runnable_at = NULL")
    await database.execute("ALTER TABLE turns DISABLE TRIGGER ALL")  # conversations are left out
    yield stored
    await database.execute("ALTER TABLE turns ENABLE TRIGGER ALL")  # the next test has it as well


async def ready(
    stored: Stored,
    tenant: str,
    count: int,
    *,
    status: str = "READY",
    due_in: timedelta | None = timedelta(seconds=-9),
) -> None:
    """So many turns of a tenant; `due_in=None`: never."""
    for first in range(1, count + 1, 10_000):
        last = min(first + 9_999, count)
        await stored.database.execute(_TURNS, tenant, first, last, status, due_in)


async def claimed_by_tenant(claims: PostgresClaims, *, limit: int = 1) -> Counter[str]:
    held = await claims.claim("w1", limit=limit, versions=VERSIONS)
    return Counter(turn.turn.identity.tenant_id for turn in held)


async def test_a_thousand_turns_of_a_tenant_do_not_delay_anothers_beyond_the_next_place(
    stored: Stored,
) -> None:
    await ready(stored, "busy", 1_000)
    assert await claimed_by_tenant(stored.claims, limit=16) == {"busy": 16}
    await ready(stored, "quiet", 1, due_in=timedelta(0))

    assert await claimed_by_tenant(stored.claims) == {"quiet": 1}
    assert await claimed_by_tenant(stored.claims) == {"busy": 1}


@pytest.mark.parametrize("names", [["a", "m", "z"], ["z", "m", "a"]])
async def test_tenants_that_have_turns_take_turns(stored: Stored, names: list[str]) -> None:
    for name in names:
        await ready(stored, name, 50)

    order = [next(iter(await claimed_by_tenant(stored.claims))) for _ in range(9)]

    assert Counter(order) == dict.fromkeys(names, 3)
    assert order[:3] == order[3:6] == order[6:]


async def test_free_places_are_shared_and_none_of_them_stays_free(stored: Stored) -> None:
    await ready(stored, "busy", 50)
    await ready(stored, "quiet", 2)
    claimed = Counter[str]()

    while found := await claimed_by_tenant(stored.claims, limit=10 - claimed.total()):
        claimed += found
        if claimed.total() == 10:
            break

    assert claimed == {"busy": 8, "quiet": 2}


async def test_a_tenant_is_found_behind_however_many_that_have_nothing_due(
    stored: Stored,
) -> None:
    for n in range(70):
        await ready(stored, f"a{n:02}", 1, status="RETRY_SCHEDULED", due_in=timedelta(hours=1))
    await ready(stored, "z", 1)

    assert await claimed_by_tenant(stored.claims) == {"z": 1}
    assert await claimed_by_tenant(stored.claims) == {}


async def test_nobody_at_work_is_no_tenant(stored: Stored) -> None:
    assert await claimed_by_tenant(stored.claims) == {}


async def test_a_claim_costs_the_same_however_many_turns_are_ready_parked_or_scheduled(
    stored: Stored,
) -> None:
    """What stands in the index is read as far as it is wanted, by every part of the plan."""
    await ready(stored, "busy", 60_000)
    await ready(stored, "later", 20_000, status="RETRY_SCHEDULED", due_in=timedelta(hours=1))
    await ready(stored, "parked", 20_000, status="WAITING_FOR_MODEL", due_in=None)
    await stored.database.execute("ANALYZE turns")
    asked = ("w1", 15.0, 1, ["clerk"], ["1"], "quiet")

    await stored.claims.claim("w1", limit=1, versions=VERSIONS)  # with plans and pages at hand
    plan = await stored.database.rows(f"EXPLAIN (ANALYZE, BUFFERS, SUMMARY) {CLAIM}", *asked)
    lines = [next(iter(row.values())) for row in plan]

    text = "\n".join(lines)
    assert "Seq Scan on turns" not in text, text
    [took] = [float(found[1]) for line in lines if (found := _TOOK.match(line))]
    most = max(int(found) for found in re.findall(r"actual time=[\d.]+ rows=(\d+)", text))
    assert most <= 4, text
    assert took < MOST_MILLISECONDS, text

    named = ("w1", 15.0, 1, ["clerk"], ["1"], ["busy-1", "busy-2", "gone"])
    plan = await stored.database.rows(f"EXPLAIN (ANALYZE) {CLAIM_NAMED}", *named)
    text = "\n".join(next(iter(row.values())) for row in plan)
    assert "Seq Scan on turns" not in text, text
    assert "turns_pkey" in text, text


_TOOK = re.compile(r"Execution Time: ([\d.]+) ms")
MOST_MILLISECONDS = 5.0
"""On a machine that does other things; alone it is 0.3 ms (`docs/adr/0028-…`)."""
