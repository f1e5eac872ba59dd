"""One turn over HTTP, and closed loops of turns."""

import asyncio
import statistics
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from bench.probe import Probe, Spent
from bench.raw_http import Pool
from bench.stub_script import read_plan
from bench.targets import Target

_WORD = b"lorem"
_TURN_SECONDS = 120
_MOST_ERRORS = 20


class TurnFailed(Exception):  # noqa: N818 - it says what happened
    """The stub's answer did not come through whole."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Of one turn, in seconds."""

    wall: float
    first: float
    """To the first word of the answer."""


@dataclass(frozen=True, slots=True)
class Client:
    """Asks one target for turns."""

    target: Target
    pool: Pool

    async def turn(self, conversation: str, script: str) -> Timing:
        """One turn; it counts only if every word of the stub's answer came.

        Raises:
            TurnFailed: it did not.
        """
        words = read_plan(script).words
        path, body, kind = self.target.ask(conversation, f"[[{script}]] please")
        began = time.perf_counter()
        first, seen, last = 0.0, 0, b""
        answer = await self.pool.send(
            "POST", path, body, accept="text/event-stream", content_type=kind
        )
        try:
            async with asyncio.timeout(_TURN_SECONDS):
                while (piece := await answer.read()) is not None:
                    found = piece.count(_WORD)
                    if found and not seen:
                        first = time.perf_counter() - began
                    seen += found
                    last = piece
        finally:
            self.pool.release(answer)
        wall = time.perf_counter() - began
        if answer.status != 200 or seen < words:
            raise TurnFailed(f"{answer.status}, {seen} of {words} words, {last[-300:]!r}")
        return Timing(wall, first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What a closed loop of turns has come to; times in milliseconds, figures per turn."""

    script: str
    concurrency: int
    turns: int
    turns_per_second: float
    p50: float
    p99: float
    overhead_per_step: float
    """(Median time of a turn - the stub's own time for it) / steps."""
    first_overhead: float
    """Median time to the first word - the stub's own time to it."""
    server_cpu: float
    database_cpu: float
    statements: float
    transactions: float
    wal: float


async def closed_loop(
    client: Client, probe: Probe, script: str, *, concurrency: int, turns: int, seconds: float
) -> Loop:
    """`concurrency` clients, one turn after the other, each in a new conversation.

    Raises:
        TurnFailed: turns fail again and again.
    """
    timings: list[Timing] = []
    errors: list[str] = []
    left = turns
    ends_at = time.perf_counter() + seconds
    before = await probe.begin()

    async def one_client() -> None:
        nonlocal left
        while left > 0 and time.perf_counter() < ends_at:
            left -= 1
            conversation = str(uuid.uuid4())
            try:
                timings.append(await client.turn(conversation, f"{script}#{conversation[:8]}"))
            except (TurnFailed, TimeoutError, OSError) as error:
                errors.append(repr(error))
                if len(errors) > _MOST_ERRORS:
                    raise TurnFailed(errors[0]) from error

    await asyncio.gather(*(one_client() for _ in range(concurrency)))
    busy_for = time.perf_counter() - before.at
    spent = await probe.since(before)
    if not timings or errors:
        raise TurnFailed(f"{len(errors)} of {len(errors) + len(timings)} turns: {errors[:2]}")
    return _summed(script, concurrency, timings, busy_for, spent_per(spent, len(timings)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PerTurn:
    """What was spent, by turn; times in milliseconds."""

    server_cpu: float
    database_cpu: float
    statements: float
    transactions: float
    wal: float
    stub: float
    stub_first: float


def spent_per(spent: Spent, count: int) -> PerTurn:
    """What each of `count` turns, or rounds, has taken."""
    return PerTurn(
        server_cpu=1e3 * spent.server_cpu / count,
        database_cpu=1e3 * spent.database_cpu / count,
        statements=spent.statements / count,
        transactions=spent.transactions / count,
        wal=spent.wal / count,
        stub=1e3 * spent.stub["busy_s"] / count,
        stub_first=1e3 * spent.stub["first_s"] / count,
    )


def _summed(
    script: str, concurrency: int, timings: Sequence[Timing], seconds: float, per_turn: PerTurn
) -> Loop:
    walls = sorted(1e3 * timing.wall for timing in timings)
    median = statistics.median(walls)
    return Loop(
        script=script,
        concurrency=concurrency,
        turns=len(walls),
        turns_per_second=len(walls) / seconds,
        p50=median,
        p99=percentile(walls, 0.99),
        overhead_per_step=(median - per_turn.stub) / read_plan(script).steps,
        first_overhead=1e3 * statistics.median(t.first for t in timings) - per_turn.stub_first,
        server_cpu=per_turn.server_cpu,
        database_cpu=per_turn.database_cpu,
        statements=per_turn.statements,
        transactions=per_turn.transactions,
        wal=per_turn.wal,
    )


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` (0 to 1) of the sorted values lie."""
    return values[min(len(values) - 1, int(part * len(values)))]
