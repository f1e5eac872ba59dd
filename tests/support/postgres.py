"""Real PostgreSQL for tests: one server per session, a database of its own for every test.

To make a database takes many times as long as to empty one. So one that a test has given back is
emptied and given to the next; one whose tables, constraints or settings are no longer those of the
template, or which has grown, is dropped.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from app.store import embedded
from tests.support.folders import reachable_folder

_LARGEST_BYTES = 32 * 2**20
_SHAPE = f"""
SELECT md5(string_agg(fact, ',' ORDER BY fact COLLATE "C")) FROM (
    SELECT 'relation ' || relname::text || relkind::text || relnatts::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'constraint ' || conname::text || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'function ' || proname::text || prosrc FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'trigger ' || tgname::text FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT 'setting ' || setconfig::text FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION ALL
    SELECT 'large' WHERE pg_database_size(current_database()) > {_LARGEST_BYTES}
) AS facts (fact)
"""  # noqa: S608 - a number of ours
_LEAVE = """
SELECT bool_and(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_EMPTY = """
DO $$
DECLARE statement text;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR statement IN
        SELECT format('DELETE FROM public.%I', tablename) FROM pg_tables
        WHERE schemaname = 'public' AND tablename <> 'alembic_version'
        UNION ALL
        SELECT format('ALTER SEQUENCE public.%I RESTART', sequencename) FROM pg_sequences
        WHERE schemaname = 'public'
    LOOP
        EXECUTE statement;
    END LOOP;
END $$
"""


class _Connection(Protocol):
    async def fetchval(self, query: str) -> Any: ...  # noqa: ANN401  whatever the query gives
    async def execute(self, query: str) -> str: ...
    async def close(self) -> None: ...


class PostgresServer:
    """A server, and a migrated template in it that is cloned for every test."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._template = f"turnkeeper_template_{secrets.token_hex(4)}"
        self._template_is_ready = False
        self._shape = ""
        self._cloned: set[str] = set()
        self._empty: list[str] = []
        self._one_at_a_time = asyncio.Lock()

    async def fresh_database(self) -> str:
        """The DSN of a migrated, empty database of one's own; `drop_database` ends it."""
        async with self._one_at_a_time:
            if not self._template_is_ready:
                await self._make_template()
        name = f"test_{secrets.token_hex(6)}"
        if not self._empty or not await self._renamed(self._empty.pop(), name):
            await self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{self._template}"')
        dsn = with_database(self.dsn, name)
        self._cloned.add(dsn)
        return dsn

    async def empty_database(self) -> str:
        """The DSN of a new database without any table; `drop_database` ends it."""
        name = f"test_{secrets.token_hex(6)}"
        await self._execute(f'CREATE DATABASE "{name}"')
        return with_database(self.dsn, name)

    async def drop_database(self, dsn: str) -> None:
        """The end of a database, whoever is still connected to it."""
        if dsn in self._cloned:
            self._cloned.remove(dsn)
            if await self._emptied(dsn):
                self._empty.append(dsn)
                return
        await self._execute(f'DROP DATABASE IF EXISTS "{_name_of(dsn)}" WITH (FORCE)')

    async def close(self) -> None:
        """Leaves the server as it was before the session."""
        for dsn in self._empty:
            await self.drop_database(dsn)
        if self._template_is_ready:
            await self.drop_database(with_database(self.dsn, self._template))

    async def _make_template(self) -> None:
        from app.store.migrations import upgrade  # noqa: PLC0415  not every test needs the store

        await self._execute(f'CREATE DATABASE "{self._template}"')
        template = with_database(self.dsn, self._template)
        await upgrade(template)
        self._shape = await query(template, _SHAPE)
        self._template_is_ready = True

    async def _renamed(self, dsn: str, name: str) -> bool:
        """Under another name, whoever its last test left behind does not find it any more."""
        try:
            await self._execute(f'ALTER DATABASE "{_name_of(dsn)}" RENAME TO "{name}"')
        except asyncpg.ObjectInUseError:
            await self.drop_database(dsn)
            return False
        return True

    async def _emptied(self, dsn: str) -> bool:
        """Whether it is as it was when it was made; who is not allowed to see to that drops it."""
        connection = await _connect(dsn)
        try:
            await connection.fetchval(_LEAVE)
            if await connection.fetchval(_SHAPE) != self._shape:
                return False
            await connection.execute(_EMPTY)
        except asyncpg.PostgresError:
            return False
        finally:
            await connection.close()
        return True

    async def _execute(self, statement: str) -> None:
        connection = await _connect(self.dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


async def query(dsn: str, statement: str) -> Any:  # noqa: ANN401  whatever the statement gives
    """The first value of a statement's answer, over a connection of its own."""
    connection = await _connect(dsn)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def _connect(dsn: str) -> _Connection:
    return cast("_Connection", await asyncpg.connect(dsn))  # pyright: ignore[reportUnknownMemberType]


def _name_of(dsn: str) -> str:
    return urlsplit(dsn).path.removeprefix("/")


def with_database(dsn: str, name: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


@asynccontextmanager
async def postgres_for_tests() -> AsyncGenerator[PostgresServer]:
    """The server of TEST_DATABASE_URL, or an embedded one in a temporary folder."""
    named = os.environ.get("TEST_DATABASE_URL")
    if named:
        server = PostgresServer(named)
        try:
            yield server
        finally:
            await server.close()
        return
    with reachable_folder() as folder:
        async with embedded.running(folder, fsync=False) as started:
            yield PostgresServer(started.dsn)
