"""The connection pool of the hot statements, and what a broken connection means."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol, TypeAlias, cast

import asyncpg

from app.ports import StoreUnavailable

Row: TypeAlias = Mapping[str, Any]

_BROKEN = (
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what asyncpg stumbles over when the server hangs up in mid-word
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,  # a full disk, no memory, too many connections
    asyncpg.OperatorInterventionError,  # it shuts down, starts up, or cancels what takes too long
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,  # after a failover: this one is a replica now
    asyncpg.TransactionRollbackError,  # deadlocks and the like
    asyncpg.LockNotAvailableError,
    OSError,
    TimeoutError,
)


class Database:
    """Statements, each a transaction of its own; but see `together`.

    Raises:
        StoreUnavailable: from every method, when the connection breaks or the server is away. The
            statement may then have been carried out.
    """

    def __init__(self, pool: Any) -> None:  # noqa: ANN401 - asyncpg ships no types
        self._pool = pool

    async def rows(self, statement: str, *arguments: object) -> Sequence[Row]:
        with _unavailable_when_broken():
            found: Sequence[Row] = await self._pool.fetch(statement, *arguments)
            return found

    async def row(self, statement: str, *arguments: object) -> Row | None:
        with _unavailable_when_broken():
            found: Row | None = await self._pool.fetchrow(statement, *arguments)
            return found

    async def value(self, statement: str, *arguments: object) -> Any:  # noqa: ANN401
        with _unavailable_when_broken():
            return await self._pool.fetchval(statement, *arguments)

    async def execute(self, statement: str, *arguments: object) -> None:
        with _unavailable_when_broken():
            await self._pool.execute(statement, *arguments)

    @asynccontextmanager
    async def together(self) -> AsyncGenerator["Database"]:
        """Statements in one transaction: where the second needs what the first has found.

        It is undone as a whole when anything is raised inside.
        """
        with _unavailable_when_broken():
            async with self._pool.acquire() as connection, connection.transaction():
                yield Database(connection)


@asynccontextmanager
async def connected(
    dsn: str, *, size: int, at_once: bool = True, statement_timeout_seconds: float = 5.0
) -> AsyncGenerator[Database, None]:
    """A pool of at most `size` connections, the first of them made `at_once` or when needed.

    Since every transaction ends where it began, a connection comes back as clean as it left: the
    pool's reset statements on every release (four of them) are left out.

    Raises:
        StoreUnavailable: the server cannot be reached.
    """
    with _unavailable_when_broken():
        pool: Any = await asyncpg.create_pool(  # pyright: ignore[reportUnknownMemberType] - untyped
            dsn,
            min_size=1 if at_once else 0,
            max_size=size,
            command_timeout=statement_timeout_seconds * 2,
            reset=_nothing_to_reset,
            server_settings={
                "application_name": "turnkeeper",
                "statement_timeout": str(int(statement_timeout_seconds * 1000)),
                "lock_timeout": "2000",
                "jit": "off",
                "timezone": "UTC",
            },
        )
    try:
        yield Database(pool)
    finally:
        with suppress(TimeoutError):
            await asyncio.wait_for(pool.close(), timeout=5)
        pool.terminate()


class Connection(Protocol):
    """A connection of its own, for listening and for migrations."""

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...
    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...
    def terminate(self) -> None: ...


async def open_connection(dsn: str) -> Connection:
    """A connection outside the pool; the caller ends it.

    Raises:
        StoreUnavailable: the server cannot be reached.
    """
    with _unavailable_when_broken():
        return cast(
            "Connection",
            await asyncpg.connect(dsn),  # pyright: ignore[reportUnknownMemberType] - untyped
        )


async def _nothing_to_reset(_connection: object) -> None:
    return None


@contextmanager
def _unavailable_when_broken() -> Generator[None, None, None]:
    try:
        yield
    except _BROKEN as error:
        message = f"the database does not answer ({type(error).__name__})"
        raise StoreUnavailable(message) from error
