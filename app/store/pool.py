"""The connection pool of the hot statements, and what a broken connection means."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol, TypeAlias, cast

import asyncpg

from app.ports import StoreUnavailable

Row: TypeAlias = Mapping[str, Any]

_KEPT_AT_HAND = 8
"""Idle connections beyond these go back to the pool, which closes them after some minutes."""

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


class _UnavailableWhenBroken:
    """Around each statement; a class, for two calls a statement instead of a generator's eight."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, _BROKEN):
            message = f"the database does not answer ({type(error).__name__})"
            raise StoreUnavailable(message) from error


_unavailable_when_broken = _UnavailableWhenBroken()


class Database:
    """Statements, each a transaction of its own; but see `together`.

    Raises:
        StoreUnavailable: from every method, when the connection breaks or the server is away. The
            statement may then have been carried out.
    """

    def __init__(self, pool: Any) -> None:  # noqa: ANN401 - asyncpg ships no types
        self._pool = pool

    async def rows(self, statement: str, *arguments: object) -> Sequence[Row]:
        with _unavailable_when_broken:
            found: Sequence[Row] = await self._pool.fetch(statement, *arguments)
            return found

    async def row(self, statement: str, *arguments: object) -> Row | None:
        with _unavailable_when_broken:
            found: Row | None = await self._pool.fetchrow(statement, *arguments)
            return found

    async def value(self, statement: str, *arguments: object) -> Any:  # noqa: ANN401
        with _unavailable_when_broken:
            return await self._pool.fetchval(statement, *arguments)

    async def execute(self, statement: str, *arguments: object) -> None:
        with _unavailable_when_broken:
            await self._pool.execute(statement, *arguments)

    @asynccontextmanager
    async def together(self) -> AsyncGenerator["Database"]:
        """Statements in one transaction: where the second needs what the first has found.

        It is undone as a whole when anything is raised inside.
        """
        with _unavailable_when_broken:
            async with self._pool.lent() as connection, connection.transaction():
                yield Database(connection)


class _Lender:
    """Lends connections of a pool, for one statement or for several.

    asyncpg's own way back into the pool is a task for every statement. A connection that has done
    its work stays at hand instead; one that has met an error, or whose statement was cancelled,
    takes the long way, which knows what to do about it.
    """

    def __init__(self, pool: Any, size: int) -> None:  # noqa: ANN401 - asyncpg ships no types
        self._pool = pool
        self._places = asyncio.Semaphore(size)
        self._at_hand: list[Any] = []
        self._is_closing = False

    async def fetch(self, *statement: object) -> Sequence[Row]:
        found: Sequence[Row] = await self._run("fetch", statement)
        return found

    async def fetchrow(self, *statement: object) -> Row | None:
        found: Row | None = await self._run("fetchrow", statement)
        return found

    async def fetchval(self, *statement: object) -> Any:  # noqa: ANN401
        return await self._run("fetchval", statement)

    async def execute(self, *statement: object) -> None:
        await self._run("execute", statement)

    async def _run(self, method: str, statement: tuple[object, ...]) -> Any:  # noqa: ANN401
        async with self._places:
            connection = await self._taken()
            try:
                found = await getattr(connection, method)(*statement)
            except BaseException:
                await self._pool.release(connection)
                raise
            await self._give_back(connection)
            return found

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[Any, None]:
        """A connection of one's own while the context is open; waits for one to be free."""
        async with self._places:
            connection = await self._taken()
            try:
                yield connection
            except BaseException:
                await self._pool.release(connection)
                raise
            await self._give_back(connection)

    def terminate(self) -> None:
        """End every connection at once, whatever it does."""
        self._pool.terminate()

    async def close(self) -> None:
        """End every connection, each once it is given back."""
        self._is_closing = True
        while self._at_hand:
            await self._give_back(self._at_hand.pop())
        await self._pool.close()

    async def _taken(self) -> Any:  # noqa: ANN401
        while self._at_hand:
            connection = self._at_hand.pop()
            if not _is_gone(connection):
                return connection
            await self._pool.release(connection)
        return await self._pool.acquire()

    async def _give_back(self, connection: Any) -> None:  # noqa: ANN401
        if self._is_closing or len(self._at_hand) == _KEPT_AT_HAND:
            await self._pool.release(connection)
        else:
            self._at_hand.append(connection)


def _is_gone(connection: Any) -> bool:  # noqa: ANN401
    """Whether the server has hung up; the pool may have taken the connection back already."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


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
    with _unavailable_when_broken:
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
    lender = _Lender(pool, size)
    try:
        yield Database(lender)
    finally:
        with suppress(TimeoutError):
            await asyncio.wait_for(lender.close(), timeout=5)
        lender.terminate()


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
    with _unavailable_when_broken:
        return cast(
            "Connection",
            await asyncpg.connect(dsn),  # pyright: ignore[reportUnknownMemberType] - untyped
        )


async def _nothing_to_reset(_connection: object) -> None:
    return None
