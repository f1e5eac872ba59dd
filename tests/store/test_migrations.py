"""The migrations make what the tables say, once, however many processes start at once."""

import asyncio
import sys

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection
from sqlmodel import SQLModel

from app.store.migrations import head
from app.store.migrations.engine import engine_for
from tests.support.postgres import PostgresServer, query


async def test_the_newest_revision_equals_the_tables(database_dsn: str) -> None:
    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), SQLModel.metadata))

    engine = engine_for(database_dsn)
    async with engine.connect() as connection:
        found = await connection.run_sync(differences)
    await engine.dispose()

    assert found == []


async def test_five_processes_that_start_at_once_migrate_once(
    postgres_server: PostgresServer,
) -> None:
    dsn = await postgres_server.empty_database()

    statuses = await asyncio.gather(*(_migrated_by_a_process(dsn) for _ in range(5)))

    assert statuses == [0] * 5
    assert await query(dsn, "SELECT version_num FROM alembic_version") == head()
    await postgres_server.drop_database(dsn)


async def _migrated_by_a_process(dsn: str) -> int:
    code = "import asyncio, sys; from app.store import migrations as m; "
    code += "asyncio.run(m.upgrade(sys.argv[1]))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, dsn)
    return await process.wait()
