"""What people, executors and the clock look for is found by an index, however much has ended."""

import pytest

from app.store.external_calls import CLAIM
from app.store.pool import Database
from app.store.waits import EXPIRED, WAITING
from tests.store.stored import TENANT, Stored
from tests.store.waiting import a_waiting_turn, an_errand, within
from tests.support.turns import NOON

_TURNS = """
INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status, version,
                   body, created_at, updated_at, stop_requested, claim_epoch, number)
SELECT 'ended-' || n, tenant_id, conversation_id, agent_id, agent_version, 'COMPLETED', 9,
       '{}', created_at, updated_at, false, 1, 1 + n
FROM turns, generate_series(1, 20000) n
"""
_CALLS = """
INSERT INTO external_calls
SELECT turn_id, 'A', tenant_id, conversation_id, agent_id, 'ship', '{}', 9, created_at, NULL,
       'completed', 1, 'van 7', created_at, created_at
FROM turns WHERE status = 'COMPLETED'
"""


@pytest.fixture
async def busy(database: Database) -> Database:
    """A database in which much has ended, and one turn waits."""
    await a_waiting_turn(Stored(database), an_errand(policy=within(60)))
    for statement in (_TURNS, _CALLS, "ANALYZE"):
        await database.execute(statement)
    return database


async def test_no_look_at_what_waits_reads_what_has_ended(busy: Database) -> None:
    looks = {
        "expired": (EXPIRED, NOON, 100, ["t1"]),
        "everybody's": (WAITING, TENANT, None, False, None, None, 50),
        "an owner's": (WAITING, TENANT, "ann", False, None, None, 50),
        "an operator's": (WAITING, TENANT, "bob", True, None, None, 50),
        "a later page": (WAITING, TENANT, None, False, NOON, "t1", 50),
        "a claim": (CLAIM, TENANT, None, ["ship"], 5, "van 7", 60.0, "ann", "CLAIM", "req_1"),
    }

    for name, (statement, *arguments) in looks.items():
        rows = await busy.rows(f"EXPLAIN {statement}", *arguments)
        plan = "\n".join(next(iter(row.values())) for row in rows)
        assert "Seq Scan on turns" not in plan, (name, plan)
        assert "Seq Scan on external_calls" not in plan, (name, plan)
