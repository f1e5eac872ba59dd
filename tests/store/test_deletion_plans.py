"""A conversation is deleted without reading what others have said, however much that is."""

import pytest
from sqlalchemy import Table

from app.store.deletion import BY_CONVERSATION, BY_TURN, DELETE, STAYS
from app.store.pool import Database
from app.store.tables import TurnRow
from app.turn import inputs as i
from tests.store.stored import TENANT, Stored
from tests.support.postgres import query

TABLES_OF_EVERY_ROUND = ("turn_events", "messages", "model_usage", "received")
_OF_OTHERS = """
INSERT INTO turn_events SELECT 'of another ' || n, 1, now(), '[]' FROM generate_series(1, 20000) n;
INSERT INTO messages (tenant_id, conversation_id, position, turn_id, role, body, created_at)
SELECT tenant_id, 'another', n, 'of another', 'user', '{}', now()
FROM turns, generate_series(1, 20000) n;
INSERT INTO model_usage (turn_id, model_attempt, tenant_id, conversation_id, agent_id, succeeded,
                         ended_at)
SELECT 'of another ' || n / 10, n, tenant_id, 'another', agent_id, true, now()
FROM turns, generate_series(1, 20000) n;
INSERT INTO received SELECT tenant_id, 'another', 'm' || n, 'of another', '', now()
FROM turns, generate_series(1, 20000) n;
ANALYZE
"""


def test_no_table_is_forgotten() -> None:
    there_are = set(TurnRow.metadata.tables)

    assert there_are == {*BY_TURN, *BY_CONVERSATION, *STAYS}


@pytest.mark.parametrize("table", TurnRow.metadata.sorted_tables, ids=lambda table: table.name)
def test_rows_are_found_by_what_an_index_begins_with(table: Table) -> None:
    if table.name in BY_CONVERSATION:
        assert _begins_an_index(table, "tenant_id", "conversation_id")
    if table.name in BY_TURN:
        assert _begins_an_index(table, "turn_id")


def test_rows_go_before_those_that_they_refer_to() -> None:
    order = [*BY_TURN, *BY_CONVERSATION]
    for table in TurnRow.metadata.sorted_tables:
        for key in table.foreign_keys:
            assert order.index(table.name) < order.index(key.column.table.name)


def _begins_an_index(table: Table, *names: str) -> bool:
    keys = [table.primary_key.columns, *(index.columns for index in table.indexes)]
    return any(tuple(column.name for column in key)[: len(names)] == names for key in keys)


@pytest.fixture
async def crowded(database_dsn: str, database: Database) -> Database:
    """A database with one ended turn, and with much of others."""
    stored = Stored(database)
    await stored.tell(await stored.a_turn(), i.Cancel())
    for statement in _OF_OTHERS.split(";"):
        await query(database_dsn, statement)
    return database


async def test_a_deletion_reads_none_of_the_large_tables_whole(crowded: Database) -> None:
    rows = await crowded.rows(
        f"EXPLAIN ANALYZE {DELETE}", TENANT, "c1", "ann", "DELETE_CONVERSATION", "req_1"
    )

    plan = "\n".join(row["QUERY PLAN"] for row in rows)
    assert await Stored(crowded).count("turns") == 0
    for table in TABLES_OF_EVERY_ROUND:
        assert f"Seq Scan on {table}" not in plan, plan
        # The check of a foreign key would have no index on the turns of messages to go by.
        assert f"{table}_turn_id_fkey" not in plan, plan
