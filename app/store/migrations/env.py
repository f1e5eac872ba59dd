"""Alembic's entry point: one connection, one transaction, one migrating process at a time."""

import asyncio

from alembic import context
from sqlalchemy import Connection, text
from sqlmodel import SQLModel

from app.store import tables
from app.store.migrations.engine import engine_for

_ONE_AT_A_TIME = 7_226_310_144  # an arbitrary number that only this code uses

assert tables.TurnRow.metadata is SQLModel.metadata  # noqa: S101 - the tables are registered


def _migrate(connection: Connection) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ONE_AT_A_TIME})
    context.configure(connection=connection, target_metadata=SQLModel.metadata)
    context.run_migrations()


async def _run() -> None:
    dsn: str = context.config.attributes["dsn"]
    engine = engine_for(dsn)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_migrate)
    finally:
        await engine.dispose()


asyncio.run(_run())
