"""Ten tools have run, then the account is exhausted: how soon that is told, how soon it goes on."""

import asyncio
import re
import statistics
import time
import uuid
from dataclasses import dataclass

import orjson

from bench.probe import Probe
from bench.raw_http import Pool
from bench.targets import Target

_SCRIPT = "tools-10+fail-429-quota-6+final"
"""Six times: whoever repeats the request by itself meets the fault again."""
_SECONDS = 30
_TURN_ID = re.compile(rb'"turnId":"([^"]+)"')
_FAILURE_ID = re.compile(rb'"failureId":"([^"]+)"')
_TOLD = re.compile(rb"TURN_SUSPENDED|event: error|event: run_error|RunError|\[DONE\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """Medians over several turns, in milliseconds."""

    told_after: float
    """From the provider's first refusal until the reader is told."""
    requests: float
    """Model requests sent until then."""
    resumed_after: float | None
    """From the request to go on until the model is called; `None`: the peer has no such request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A turn that waits because its account is exhausted."""

    conversation: str
    key: str
    turn_id: str
    failure_id: str
    told_after: float
    requests: int


async def failing(target: Target, pool: Pool, probe: Probe, *, repeats: int) -> Failing:
    """The scenario, several times."""
    told: list[float] = []
    requests: list[float] = []
    resumed: list[float] = []
    for _ in range(repeats):
        parked = await park(target, pool, probe)
        told.append(parked.told_after)
        requests.append(parked.requests)
        after = await resume(target, pool, probe, parked)
        if after is not None:
            resumed.append(after)
    return Failing(
        told_after=statistics.median(told),
        requests=statistics.median(requests),
        resumed_after=statistics.median(resumed) if resumed else None,
    )


async def park(target: Target, pool: Pool, probe: Probe) -> Parked:
    """A turn brought to where its provider refuses it."""
    conversation = str(uuid.uuid4())
    key = f"t{conversation[:12]}"
    path, body, kind = target.ask(conversation, f"[[{_SCRIPT}#{key}]] please")
    said = b""
    told_at = 0.0
    answer = await pool.send("POST", path, body, accept="text/event-stream", content_type=kind)
    async with asyncio.timeout(_SECONDS):
        while not told_at and (piece := await answer.read()) is not None:
            said += piece
            if _TOLD.search(piece):
                told_at = time.perf_counter()
    told_at = told_at or time.perf_counter()
    pool.release(answer)
    times = await probe.trace(key)
    turn, failure = _TURN_ID.search(said), _FAILURE_ID.findall(said)
    return Parked(
        conversation=conversation,
        key=key,
        turn_id=turn[1].decode() if turn else "",
        failure_id=failure[-1].decode() if failure else "",
        told_after=1e3 * (told_at - times[1][1]),
        requests=len(times) - 1,
    )


async def resume(target: Target, pool: Pool, probe: Probe, parked: Parked) -> float | None:
    """The account is topped up and the turn resumed: milliseconds until its model is called."""
    asked = _request_to_go_on(target, parked)
    if asked is None:
        return None
    await probe.stub.fetch("POST", f"/heal?{parked.key}")
    path, body = asked
    began = time.perf_counter()
    await pool.fetch("POST", path, body)
    async with asyncio.timeout(_SECONDS):
        while len(times := await probe.trace(parked.key)) <= 1 + parked.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.002)  # the stub tells nobody
    return 1e3 * (times[1 + parked.requests][0] - began)


def _request_to_go_on(target: Target, parked: Parked) -> tuple[str, bytes] | None:
    if target.is_ours:
        return f"/turns/{parked.turn_id}/resume", orjson.dumps({"failureId": parked.failure_id})
    if target.name.startswith("langgraph"):
        return "/turn", orjson.dumps({"conversation_id": parked.conversation, "message": None})
    return None
