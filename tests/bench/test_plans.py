"""A hot statement that no longer goes by its index is named."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from app.store.pool import open_connection
from bench.plans import looks, off_their_index

MANY = """
INSERT INTO conversations (tenant_id, conversation_id, owner_id, agent_id, title, created_at,
                           updated_at)
SELECT 'default', 'c-' || n, 'ann', 'bench', '', now(), now() FROM generate_series(1, 20000) n;
INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status, version,
                   body, created_at, updated_at, stop_requested, claim_epoch, number, is_folded)
SELECT 't-' || n, 'default', 'c-' || n, 'bench', '1', 'WAITING_FOR_MODEL', 9, '{}', now(), now(),
       false, 1, 1, false
FROM generate_series(1, 20000) n;
INSERT INTO turn_events (turn_id, sequence, occurred_at, events)
SELECT 't-' || n, 9, now(), '[]' FROM generate_series(1, 20000) n;
ANALYZE
"""


@pytest.fixture
async def connection(database_dsn: str) -> AsyncGenerator[Any]:
    """To a database with many turns that wait."""
    found: Any = await open_connection(database_dsn)
    await found.execute(MANY)
    yield found
    await found.close()


async def test_none_is_named_while_all_indexes_are_there(connection: Any) -> None:  # noqa: ANN401
    assert await off_their_index(connection, looks("t-7", "c-7")) == {}


@pytest.mark.parametrize(
    ("drop", "named"),
    [
        ("INDEX turns_claimable_by_tenant", "claim"),
        ("INDEX one_active_turn_per_conversation", "active turn"),
    ],
)
async def test_one_whose_index_is_gone_is_named_with_its_plan(
    connection: Any,  # noqa: ANN401
    drop: str,
    named: str,
) -> None:
    await connection.execute(f"DROP {drop}")

    off = await off_their_index(connection, looks("t-7", "c-7"))

    assert named in off
    assert "turns" in off[named]
