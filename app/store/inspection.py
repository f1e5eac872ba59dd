"""What a database is, asked before it is used: its version and the schema it holds."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from app.store.statuses import NOT_TERMINAL

OLDEST_SUPPORTED, NEWEST_SUPPORTED = 15, 18

_ANSWERS_WITHIN_SECONDS = 10


class DatabaseUnreachableError(Exception):
    """No connection to the database; the message says where to and why, never the password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    major_version: int

    revision: str | None
    """The migration the schema is at; None when there is no schema yet."""

    @property
    def is_supported(self) -> bool:
        """Whether its version is one this code is tested with."""
        return OLDEST_SUPPORTED <= self.major_version <= NEWEST_SUPPORTED


async def inspect(dsn: str) -> DatabaseFacts:
    """Facts about the database behind `dsn`, over a connection of its own.

    Raises:
        DatabaseUnreachableError: it cannot be connected to within 10 seconds.
    """
    connection = await _connect(dsn)
    try:
        number = int(await connection.fetchval("SHOW server_version_num"))
        has_schema = await connection.fetchval("SELECT to_regclass('alembic_version') IS NOT NULL")
        revision = has_schema and await connection.fetchval(
            "SELECT version_num FROM alembic_version"
        )
    finally:
        await connection.close()
    return DatabaseFacts(major_version=number // 10_000, revision=revision or None)


_WAITS_LEFT = f"""
SELECT (SELECT count(*) FROM turns
        WHERE waiting_since IS NOT NULL AND NOT ({NOT_TERMINAL}))
     + (SELECT count(*) FROM turns
        WHERE wait_expires_at IS NOT NULL AND NOT ({NOT_TERMINAL}))
     + (SELECT count(*) FROM external_calls e JOIN turns t USING (turn_id)
        WHERE e.status = 'open' AND (NOT (t.{NOT_TERMINAL}) OR EXISTS (
            SELECT FROM messages m
            WHERE (m.tenant_id, m.conversation_id, m.turn_id, m.role, m.call_id)
                  = (t.tenant_id, t.conversation_id, t.turn_id, 'tool', e.call_id))))
"""


async def waits_left(dsn: str) -> int:
    """Waits that somebody could be asked to answer although nothing waits any more; 0, or a fault.

    They are those of turns that have ended, and calls outside that have their answer.

    Raises:
        DatabaseUnreachableError: it cannot be connected to within 10 seconds.
    """
    connection = await _connect(dsn)
    try:
        return int(await connection.fetchval(_WAITS_LEFT))
    finally:
        await connection.close()


async def _connect(dsn: str) -> Any:  # noqa: ANN401  asyncpg ships no types of its own
    try:
        return await asyncpg.connect(dsn, timeout=_ANSWERS_WITHIN_SECONDS)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    except (
        OSError,
        TimeoutError,
        ValueError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
    ) as error:
        place = urlsplit(dsn).netloc.rpartition("@")[2] or urlsplit(dsn).query
        message = f"no connection to PostgreSQL at {place}: {error or type(error).__name__}"
        raise DatabaseUnreachableError(message) from error
