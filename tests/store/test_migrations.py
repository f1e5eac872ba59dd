"""The migrations make what the tables say, once, however many processes start at once."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlmodel import SQLModel

from app.store.migrations import head, upgrade
from app.store.migrations.engine import engine_for
from app.store.migrations.running import config
from tests.support.polling import eventually
from tests.support.postgres import PostgresServer, query


async def test_the_newest_revision_equals_the_tables(database_dsn: str) -> None:
    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), SQLModel.metadata))

    engine = engine_for(database_dsn)
    async with engine.connect() as connection:
        found = await connection.run_sync(differences)
    await engine.dispose()

    assert found == []


def test_the_newest_file_is_the_head_of_one_line_of_migrations() -> None:
    assert ScriptDirectory.from_config(config("")).get_heads() == [head()]


async def test_turns_that_waited_before_there_was_a_list_of_them_are_in_it(
    postgres_server: PostgresServer,
) -> None:
    dsn = await postgres_server.empty_database()
    await asyncio.to_thread(command.upgrade, config(dsn), "0004")
    await query(
        dsn,
        """
        WITH c AS (INSERT INTO conversations VALUES ('t', 'c', 'ann', 'clerk', '', now(), now()))
        INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status,
                           version, body, created_at, updated_at, stop_requested, claim_epoch)
        VALUES ('t1', 't', 'c', 'clerk', '1', 'PAUSED', 1, '{}', now(), '2026-08-01Z', false, 0),
               ('t2', 't', 'c', 'clerk', '1', 'CANCELLED', 1, '{}', now(), now(), false, 0)
        """,
    )

    await upgrade(dsn)

    waiting = "SELECT string_agg(turn_id || waits_for::text, ',') FROM turns"
    since = "WHERE waiting_since = '2026-08-01Z'"
    assert await query(dsn, f"{waiting} {since}") == "t1{PAUSED}"
    await postgres_server.drop_database(dsn)


async def test_scenario_119_five_processes_that_start_at_once_migrate_once(
    postgres_server: PostgresServer,
) -> None:
    dsn = await postgres_server.empty_database()

    statuses = await asyncio.gather(*(_migrated_by_a_process(dsn) for _ in range(5)))

    assert statuses == [0] * 5
    assert await query(dsn, "SELECT version_num FROM alembic_version") == head()
    await postgres_server.drop_database(dsn)


async def test_scenario_119_a_migration_that_was_killed_in_its_midst_is_run_again(
    postgres_server: PostgresServer,
) -> None:
    """It stands before a table that somebody else holds, so it is killed in the middle."""
    dsn = await postgres_server.empty_database()
    await asyncio.to_thread(command.upgrade, config(dsn), "0004")
    async with reading(dsn, "turns"):
        process = await _migrating(dsn)
        await eventually(lambda: is_kept_waiting(dsn))
        process.kill()
        await process.wait()
    between = await query(dsn, "SELECT version_num FROM alembic_version")

    assert await _migrated_by_a_process(dsn) == 0
    assert between == "0004"
    assert await query(dsn, "SELECT version_num FROM alembic_version") == head()
    await postgres_server.drop_database(dsn)


@asynccontextmanager
async def reading(dsn: str, table: str) -> AsyncGenerator[None]:
    """Somebody reads the table for as long as the block takes."""
    engine = engine_for(dsn)
    async with engine.begin() as connection:
        await connection.execute(text(f"LOCK TABLE {table} IN ACCESS SHARE MODE"))
        yield
    await engine.dispose()


async def is_kept_waiting(dsn: str) -> bool:
    found: int = await query(dsn, "SELECT count(*) FROM pg_locks WHERE NOT granted")
    return found > 0


async def _migrated_by_a_process(dsn: str) -> int:
    return await (await _migrating(dsn)).wait()


async def _migrating(dsn: str) -> asyncio.subprocess.Process:
    code = "import asyncio, sys; from app.store import migrations as m; "
    code += "asyncio.run(m.upgrade(sys.argv[1]))"
    return await asyncio.create_subprocess_exec(sys.executable, "-c", code, dsn)
