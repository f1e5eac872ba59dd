"""The SQLAlchemy engine of migrations; everything else goes through asyncpg directly."""

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.store.pool import open_connection


def engine_for(dsn: str) -> AsyncEngine:
    """An engine over the DSN as asyncpg takes it; the caller disposes of it."""
    return create_async_engine("postgresql+asyncpg://", async_creator=lambda: open_connection(dsn))
