"""Alembic's entry point: one connection, one transaction, one migrating process at a time."""

import asyncio

import asyncpg
from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import SQLModel

from app.store import tables

_ONE_AT_A_TIME = 7_226_310_144  # an arbitrary number that only this code uses

assert tables.TurnRow.metadata is SQLModel.metadata  # noqa: S101 - the tables are registered


def _migrate(connection: Connection) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ONE_AT_A_TIME})
    context.configure(connection=connection, target_metadata=SQLModel.metadata)
    context.run_migrations()


async def _run() -> None:
    dsn: str = context.config.attributes["dsn"]
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(dsn)
    )
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_migrate)
    finally:
        await engine.dispose()


asyncio.run(_run())
