"""A throw-away PostgreSQL with `pg_stat_statements`, from Debian's packages.

The embedded one of the product lacks that extension, so counts of statements need another.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from bench.processes import LOOPBACK, free_port, running

_PLACES = Path("/usr/lib/postgresql")
_STARTING = 1
"""What `pg_isready` says of a server that refuses connections as yet."""
_OPTIONS = {
    "shared_preload_libraries": "pg_stat_statements",
    "synchronous_commit": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
    "listen_addresses": LOOPBACK,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A PostgreSQL that lives as long as a benchmark."""

    port: int
    pid: int
    programs: Path

    def url(self, database: str) -> str:
        """Where a database of it is, for asyncpg and psycopg."""
        return f"postgresql://postgres@{LOOPBACK}:{self.port}/{database}"

    def sql(self, *statements: str, database: str = "postgres") -> None:
        """Run statements, one transaction each."""
        command = [str(self.programs / "psql"), "-qAt", "-v", "ON_ERROR_STOP=1", self.url(database)]
        asked = [part for statement in statements for part in ("-c", statement)]
        subprocess.run([*command, *asked], check=True, stdout=subprocess.DEVNULL)  # noqa: S603

    async def connect(self, database: str) -> Any:  # noqa: ANN401 - asyncpg has no types
        """A connection of asyncpg."""
        return await asyncpg.connect(self.url(database))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def new_database(self, name: str) -> str:
        """An empty database of that name, and its address; one that was there is dropped."""
        quietly = "SET client_min_messages = warning"
        self.sql(quietly, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.sql(f"CREATE DATABASE {name}")
        self.sql("CHECKPOINT")
        return self.url(name)


def programs() -> Path:
    """The folder of Debian's newest PostgreSQL that has the extension.

    Raises:
        RuntimeError: there is none.
    """
    for place in sorted(_PLACES.glob("*"), key=lambda p: -int(p.name)):
        if (place / "lib/pg_stat_statements.so").exists() and (place / "bin/initdb").exists():
            return place / "bin"
    raise RuntimeError("PostgreSQL with pg_stat_statements is missing: apt-get install postgresql")


@contextmanager
def cluster() -> Generator[Cluster]:
    """An empty cluster in a temporary folder, which goes with the context."""
    found, port = programs(), free_port()
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="turnkeeper-bench-pg-"))
    try:
        if user is not None:
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        data = folder / "data"
        subprocess.run(  # noqa: S603
            [str(found / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"],
            check=True,
            stdout=subprocess.DEVNULL,
            user=user,
            group=user,
            cwd=folder,
        )
        options = [part for name, v in _OPTIONS.items() for part in ("-c", f"{name}={v}")]
        command = [str(found / "postgres"), "-D", str(data), "-k", str(folder), "-p", str(port)]
        with running(
            [*command, *options], log=folder.with_suffix(".log"), port=port, user=user
        ) as pid:
            started = Cluster(port=port, pid=pid, programs=found)
            ready = [str(found / "pg_isready"), "-q", "-t", "30", "-d", started.url("postgres")]
            while subprocess.run(ready, check=False).returncode == _STARTING:  # noqa: S603
                time.sleep(0.1)
            started.sql("CREATE EXTENSION pg_stat_statements")
            yield started
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".log").unlink(missing_ok=True)
