"""What a step costs late in a long turn, and a turn late in a long conversation."""

import statistics
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.probe import Probe
from bench.turns import Client, spent_per

_AROUND = 5
"""Neighbours on each side that a figure is the median of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTurn:
    """One turn of many rounds."""

    rounds: int
    size: int
    """Bytes of each tool result."""
    gaps: Mapping[int, float]
    """Milliseconds from the end of a model's answer to its next request, by round."""
    wal: float
    """Bytes per round."""
    statements: float
    transactions: float
    server_cpu: float
    """Milliseconds per round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongConversation:
    """Many turns of one conversation."""

    turns: int
    walls: Mapping[int, float]
    """Milliseconds of a turn, by its number."""
    wal: float
    """Bytes per turn, over all."""


async def long_turn(client: Client, probe: Probe, *, rounds: int, size: int) -> LongTurn:
    """A turn with one tool call in each of its rounds.

    Raises:
        TurnFailed: its answer did not come whole.
    """
    conversation = str(uuid.uuid4())
    key = f"t{conversation[:12]}"
    before = await probe.begin()
    await client.turn(conversation, f"steps-{rounds}+size{size}#{key}")
    per_round = spent_per(await probe.since(before), rounds)
    times = await probe.trace(key)
    gaps = [1e3 * (later[0] - call[1]) for call, later in pairwise(times)]
    marks = (5, rounds // 2, rounds - 5)
    return LongTurn(
        rounds=rounds,
        size=size,
        gaps={mark: _around(gaps, mark) for mark in marks},
        wal=per_round.wal,
        statements=per_round.statements,
        transactions=per_round.transactions,
        server_cpu=per_round.server_cpu,
    )


async def long_conversation(client: Client, probe: Probe, *, turns: int) -> LongConversation:
    """Turn after turn, each with one tool call.

    Raises:
        TurnFailed: an answer did not come whole.
    """
    conversation = str(uuid.uuid4())
    walls: list[float] = []
    before = await probe.begin()
    for number in range(turns):
        began = time.perf_counter()
        await client.turn(conversation, f"steps-1#{number}")
        walls.append(1e3 * (time.perf_counter() - began))
    spent = await probe.since(before)
    marks = (5, turns // 2, turns - 5)
    return LongConversation(
        turns=turns,
        walls={mark: _around(walls, mark) for mark in marks},
        wal=spent.wal / turns,
    )


def _around(values: Sequence[float], place: int) -> float:
    return statistics.median(values[max(0, place - _AROUND) : place + _AROUND])
