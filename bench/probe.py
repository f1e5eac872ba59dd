"""What is read before and after a scenario: processor time, statements, transactions, bytes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from bench.postgres import Cluster
from bench.processes import cpu_seconds, resident_mb
from bench.raw_http import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Counters at one moment."""

    at: float
    server_cpu: float
    database_cpu: float
    wal: int
    """Bytes the cluster has written to its log."""
    transactions: int
    """Transaction ids used: commits that had to reach the disk."""
    stub: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What lies between two readings."""

    seconds: float
    server_cpu: float
    database_cpu: float
    wal: int
    transactions: int
    statements: int
    """BEGIN and COMMIT included."""
    stub: Mapping[str, float]


class Probe:
    """Reads the counters of one server, its database and the stub."""

    def __init__(
        self,
        cluster: Cluster,
        connection: Any,  # noqa: ANN401 - asyncpg has no types
        *,
        database: str,
        pid: int,
        stub: Pool,
    ) -> None:
        self.stub = stub
        self.pid = pid
        self._cluster = cluster
        self._connection = connection
        self._database = database

    @classmethod
    async def open(cls, cluster: Cluster, *, database: str, pid: int, stub: Pool) -> "Probe":
        """A probe with a connection of its own to another database of the cluster."""
        connection = await cluster.connect("postgres")
        return cls(cluster, connection, database=database, pid=pid, stub=stub)

    async def close(self) -> None:
        """Give the connection back."""
        await self._connection.close()

    async def begin(self) -> Reading:
        """Counters at zero, then the first reading."""
        await self.stub.fetch("POST", "/reset")
        await self._connection.execute("SELECT pg_stat_statements_reset()")
        return await self._read()

    async def since(self, before: Reading) -> Spent:
        """What has been spent since then."""
        now = await self._read()
        return Spent(
            seconds=now.at - before.at,
            server_cpu=now.server_cpu - before.server_cpu,
            database_cpu=now.database_cpu - before.database_cpu,
            wal=now.wal - before.wal,
            transactions=now.transactions - before.transactions,
            statements=sum(calls for _, calls in await self.statements()),
            stub=now.stub,
        )

    async def statements(self) -> list[tuple[str, int]]:
        """Statements of the server's database since `begin` with their counts, most first."""
        rows = await self._connection.fetch(
            "SELECT query, calls FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid"
            " WHERE d.datname = $1 ORDER BY calls DESC",
            self._database,
        )
        return [(" ".join(row["query"].split())[:160], row["calls"]) for row in rows]

    async def trace(self, key: str) -> list[tuple[float, float]]:
        """When the calls of a turn arrived at the stub and were answered."""
        _, body = await self.stub.fetch("GET", f"/trace?{key}")
        return [(arrived, answered) for arrived, answered in orjson.loads(body)]

    @property
    def resident_mb(self) -> float:
        return resident_mb(self.pid)

    async def _read(self) -> Reading:
        wal, transactions = await self._connection.fetchrow(
            "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn,"
            " pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        )
        _, stub = await self.stub.fetch("GET", "/stats")
        return Reading(
            at=time.perf_counter(),
            server_cpu=cpu_seconds(self.pid),
            database_cpu=cpu_seconds(self._cluster.pid),
            wal=int(wal),
            transactions=transactions,
            stub=orjson.loads(stub),
        )
