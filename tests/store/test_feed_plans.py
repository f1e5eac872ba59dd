"""Whatever is asked for every reader or every message is found by an index, among 10^5 turns."""

import pytest

from app.store.conversations import LOOK_UP
from app.store.feeds import NEWEST, TO_FOLD, TURN_FROM, VERSIONS
from app.store.pool import Database
from app.store.turns import JOURNAL
from tests.store.stored import TENANT, Stored
from tests.store.waiting import a_waiting_turn, an_errand, within
from tests.support.postgres import query
from tests.support.turns import NOON

_CONVERSATIONS = """
INSERT INTO conversations (tenant_id, conversation_id, owner_id, agent_id, title, created_at,
                           updated_at)
SELECT tenant_id, 'c-' || n, owner_id, agent_id, '', created_at, updated_at
FROM conversations, generate_series(1, 1000) n
"""
_TURNS = """
INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status, version,
                   body, created_at, updated_at, stop_requested, claim_epoch, number, is_folded)
SELECT 'ended-' || n, tenant_id, 'c-' || (n % 1000 + 1), agent_id, agent_version, 'COMPLETED', 9,
       '{}', created_at, updated_at, false, 1, n / 1000 + 1, true
FROM turns, generate_series(1, 100000) n
"""
_EVENTS = """
INSERT INTO turn_events (turn_id, sequence, occurred_at, events)
SELECT turn_id, 9, created_at, '[]' FROM turns WHERE status = 'COMPLETED' LIMIT 20000
"""


@pytest.fixture
async def busy(database_dsn: str, database: Database) -> Database:
    """A database with many turns that have ended, and one that waits."""
    await a_waiting_turn(Stored(database), an_errand(policy=within(60)))
    for statement in (_CONVERSATIONS, _TURNS, _EVENTS, "ANALYZE"):
        await query(database_dsn, statement)  # which may take longer than a statement of ours
    return database


async def test_looks_of_readers_and_of_messages_use_their_indexes(busy: Database) -> None:
    looks: dict[str, tuple[str, list[object]]] = {
        "turn_events_pkey": (JOURNAL, ["ended-500", 3, 16]),
        "turns_pkey": (VERSIONS, [["ended-1", "ended-99"]]),
        "turns_by_number": (TURN_FROM, [TENANT, "c-7", 50]),
        "one_active_turn_per_conversation": (LOOK_UP, [TENANT, "c-7", "m1"]),
        "turns_to_fold": (TO_FOLD, [NOON, 100]),
        "Index Only Scan Backward using turns_by_number": (NEWEST, [[TENANT] * 2, ["c-1", "c-2"]]),
    }

    for index, (statement, arguments) in looks.items():
        plan = await plan_of(busy, statement, arguments)
        assert index in plan, (index, plan)
        assert "Seq Scan on turn" not in plan, plan
    # What has been folded is in no list of what is to be done.
    assert await busy.value("SELECT pg_relation_size('turns_to_fold')") <= 16_384


async def plan_of(database: Database, statement: str, arguments: list[object]) -> str:
    """How the statement would be carried out."""
    rows = await database.rows(f"EXPLAIN {statement}", *arguments)
    return "\n".join(next(iter(row.values())) for row in rows)
