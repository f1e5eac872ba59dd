"""Of this service alone: a million turns that wait, a thousand readers of one, and idleness."""

import asyncio
import re
import statistics
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from bench.failing import park, resume
from bench.plans import looks, off_their_index
from bench.postgres import Cluster
from bench.probe import Probe
from bench.raw_http import Connection, Pool
from bench.targets import Target
from bench.turns import percentile

_COPIED = ("conversations", "turns", "messages", "turn_events", "model_failures")
_WITH_A_NUMBER = frozenset({"turn_id", "conversation_id", "failure_id"})
_IDLE_SECONDS = 10
_THINKS = 4.0
"""Seconds before the first word, so that every reader is there."""
_OFFSET = re.compile(rb'"type":"MODEL_TEXT".*?"offset":(\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waking one turn costs beside many that wait; milliseconds, bytes, MB."""

    turns: int
    resumed_alone: float
    resumed_beside: float
    memory_grown: float
    bytes_per_turn: float
    """On disk, indexes included, its messages and events too."""
    off_their_index: int
    """Hot statements that read another way than they are meant to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A server that has nothing to do."""

    statements_per_second: float
    memory: float
    """MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Many readers of one turn; milliseconds."""

    readers: int
    words_per_second: int
    is_complete: bool
    p50: float
    p99: float
    """From the word's being written to its being read, the first word of each piece."""
    statements: int
    kb_per_reader: float


async def idle(probe: Probe) -> Idle:
    """Statements a second while nobody asks for anything."""
    before = await probe.begin()
    await asyncio.sleep(_IDLE_SECONDS)
    spent = await probe.since(before)
    return Idle(statements_per_second=spent.statements / spent.seconds, memory=probe.resident_mb)


async def waiting(
    target: Target, pool: Pool, probe: Probe, cluster: Cluster, *, database: str, turns: int
) -> Waiting:
    """Resume one turn with none parked, then with `turns` parked."""
    alone = await _resumed(target, pool, probe)
    parked = await park(target, pool, probe)
    connection = await cluster.connect(database)
    try:
        size = await _copy(connection, parked.turn_id, parked.conversation, turns)
        wanted = looks(f"{parked.turn_id}-{turns // 2}", f"{parked.conversation}-{turns // 2}")
        off = await off_their_index(connection, wanted)
    finally:
        await connection.close()
    for name, plan in off.items():
        print(f"{name} does not go by {wanted[name].index}:\n{plan}", file=sys.stderr)
    memory = probe.resident_mb
    beside = await _resumed(target, pool, probe)
    return Waiting(
        turns=turns,
        resumed_alone=alone,
        resumed_beside=beside,
        memory_grown=probe.resident_mb - memory,
        bytes_per_turn=size / turns,
        off_their_index=len(off),
    )


async def _resumed(target: Target, pool: Pool, probe: Probe) -> float:
    times = [await resume(target, pool, probe, await park(target, pool, probe)) for _ in range(30)]
    return statistics.median(t for t in times[5:] if t is not None)


async def _copy(connection: Any, turn_id: str, conversation_id: str, turns: int) -> int:  # noqa: ANN401 - asyncpg has no types
    """As many turns as wanted, each a copy of the parked one; the bytes they take."""
    before = await connection.fetchval("SELECT pg_database_size(current_database())")
    for table in _COPIED:
        rows = await connection.fetch(
            "SELECT column_name FROM information_schema.columns WHERE table_name = $1"
            " ORDER BY ordinal_position",
            table,
        )
        columns = [row["column_name"] for row in rows]
        values = [f"t.{c} || '-' || g" if c in _WITH_A_NUMBER else f"t.{c}" for c in columns]
        where = (
            "turn_id = $1"
            if table in {"turns", "turn_events", "model_failures"}
            else ("conversation_id = $1")
        )
        await connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)}"  # noqa: S608
            f" FROM (SELECT * FROM {table} WHERE {where}) t, generate_series(1, {turns}) g",
            conversation_id if where.startswith("conversation") else turn_id,
        )
    await connection.execute("VACUUM ANALYZE")
    after = await connection.fetchval("SELECT pg_database_size(current_database())")
    return int(after - before)


async def readers(
    target: Target, pool: Pool, probe: Probe, *, count: int, words_per_second: int
) -> Readers:
    """`count` readers of one turn whose model writes that many words a second for five seconds."""
    conversation = str(uuid.uuid4())
    key = f"t{conversation[:12]}"
    words, delay = 5 * words_per_second, 1 / words_per_second
    script = f"[[echo-{words}+think{round(1e3 * _THINKS)}+d{round(1e3 * delay)}#{key}]] please"
    path, body, kind = target.ask(conversation, script)
    _, said = await pool.fetch("POST", path, body, content_type=kind, accept="application/json")
    turn_id = orjson.loads(said)["turnId"]
    memory = probe.resident_mb
    opened = await asyncio.gather(
        *(
            pool.send("GET", f"/turns/{turn_id}/events", accept="text/event-stream")
            for _ in range(count)
        )
    )
    await asyncio.gather(*(connection.read() for connection in opened))  # what is stored already
    grown = probe.resident_mb - memory
    before = await probe.begin()
    seen = await asyncio.gather(*(_read(connection) for connection in opened))
    spent = await probe.since(before)
    ((arrived, _),) = await probe.trace(key)
    due = [arrived + _THINKS + (place + 1) * delay for place in range(words)]
    lags = sorted(1e3 * (at - due[word]) for pieces in seen for word, at in pieces)
    return Readers(
        readers=count,
        words_per_second=words_per_second,
        is_complete=all(pieces and pieces[-1][0] < words for pieces in seen),
        p50=percentile(lags, 0.5),
        p99=percentile(lags, 0.99),
        statements=spent.statements,
        kb_per_reader=1e3 * grown / count,
    )


async def _read(connection: Connection) -> Sequence[tuple[int, float]]:
    """Which word each piece of live text began with, and when it came."""
    pieces: list[tuple[int, float]] = []
    while (piece := await connection.read()) is not None:
        now = time.perf_counter()
        if found := _OFFSET.search(piece):
            pieces.append((int(found[1]) // len("lorem "), now))
    return pieces
