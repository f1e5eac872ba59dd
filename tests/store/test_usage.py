"""Sums of what was spent are read through an index on the tenant and the time."""

from datetime import timedelta

import pytest

from app.ports import Scope
from app.store.pool import Database
from app.store.usage import SUMS, PostgresUsage
from app.turn.ids import ActorId
from tests.store.stored import ALL, TENANT, Stored
from tests.support.turns import NOON

ROWS = 40_000
A_MINUTE_EACH = """
INSERT INTO model_usage (turn_id, model_attempt, tenant_id, conversation_id, agent_id, succeeded,
                         input_tokens, cached_input_tokens, output_tokens, ended_at)
SELECT $1, n, CASE WHEN n % 2 = 0 THEN $2 ELSE 'another' END, 'c1', 'clerk', true, 10, NULL, n % 3,
       $3::timestamptz + n * interval '1 minute'
FROM generate_series(1, $4::int) AS n
"""


@pytest.fixture
async def spent(database: Database) -> Database:
    """A month of model calls, one each minute, by turns of this tenant and of another."""
    turn = await Stored(database).a_turn()
    await database.execute(A_MINUTE_EACH, turn.identity.turn_id, TENANT, NOON, ROWS)
    await database.execute("ANALYZE model_usage")
    return database


@pytest.mark.parametrize("scope", [ALL, Scope(tenant_id=TENANT, owner_id=ActorId("ann"))])
async def test_a_day_is_found_by_the_index(spent: Database, scope: Scope) -> None:
    day = (NOON + timedelta(days=7), NOON + timedelta(days=8))

    rows = await spent.rows(f"EXPLAIN ANALYZE {SUMS}", scope.tenant_id, scope.owner_id, *day)

    plan = "\n".join(row["QUERY PLAN"] for row in rows)
    assert "model_usage_by_time" in plan, plan
    assert "Seq Scan on model_usage" not in plan, plan


async def test_a_day_is_summed_as_it_is(spent: Database) -> None:
    found = await PostgresUsage(spent).by_agent(
        ALL, since=NOON + timedelta(days=7), until=NOON + timedelta(days=8)
    )

    (spending,) = found.values()
    assert spending.attempts == 720
    assert spending.input_tokens.known == 7_200
    assert (spending.cached_input_tokens.known, spending.cached_input_tokens.attempts_without) == (
        None,
        720,
    )
