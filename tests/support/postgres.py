"""Real PostgreSQL for tests: one server per session, a database of its own for every test."""

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
        self._one_at_a_time = asyncio.Lock()

    async def fresh_database(self) -> str:
        """The DSN of a new, migrated and empty database; `drop_database` ends it."""
        async with self._one_at_a_time:
            if not self._template_is_ready:
                await self._make_template()
        name = f"test_{secrets.token_hex(6)}"
        await self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{self._template}"')
        return with_database(self.dsn, name)

    async def empty_database(self) -> str:
        """The DSN of a new database without any table; `drop_database` ends it."""
        name = f"test_{secrets.token_hex(6)}"
        await self._execute(f'CREATE DATABASE "{name}"')
        return with_database(self.dsn, name)

    async def drop_database(self, dsn: str) -> None:
        """Drops a database, whoever is still connected to it."""
        name = urlsplit(dsn).path.removeprefix("/")
        await self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    async def close(self) -> None:
        """Leaves the server as it was before the session."""
        if self._template_is_ready:
            await self.drop_database(with_database(self.dsn, self._template))

    async def _make_template(self) -> None:
        from app.store.migrations import upgrade  # noqa: PLC0415  not every test needs the store

        await self._execute(f'CREATE DATABASE "{self._template}"')
        await upgrade(with_database(self.dsn, self._template))
        self._template_is_ready = True

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
