"""Two hundred readers on a pool of ten connections, most of them behaving badly."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from random import Random

import httpx

from tests.e2e.conftest import Stage
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.support.raw_reader import asked, take, vanish, was_cut
from tests.support.service import Service, running_service
from tests.support.sizes import size
from tests.support.sse_reader import TurnReader, check_reading
from tests.support.story import MODEL, QUOTA, clerk

POOL = 10
SECONDS = size(12, soak=900)
STALLED_SECONDS = 3.0
"""In place of 60."""
WORD = "Größe 漢字 🙂 and so on, "
LARGEST_EVENT = 1_200_000
BULK = {"text": WORD * 20_000, "chunks": 40, "delay_ms": 0}
"""More than the kernel keeps for a reader that takes nothing."""
NORMAL, CUT, SLOW, STALLED, VANISHING = 80, 40, 40, 20, 20


@asynccontextmanager
async def crowded(stage: Stage) -> AsyncGenerator[Service]:
    patient = {"database_pool_size": POOL, "model_total_timeout_seconds": 60.0 + 3 * SECONDS}
    settings = stage.settings.model_copy(update=patient)
    async with running_service(
        stage.dsn, settings, agents=[clerk(stage.ledger)], stalled_seconds=STALLED_SECONDS
    ) as service:
        yield service


@dataclass(slots=True)
class Base:
    """What a process holds when nobody reads."""

    files: int
    connections: int

    @classmethod
    async def of(cls, stage: Stage) -> "Base":
        own = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        return cls(
            files=len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - the listing is the count
            connections=int(await query(stage.dsn, own)),
        )


async def test_case_137_two_hundred_readers_on_ten_connections_harm_nobody(stage: Stage) -> None:
    long = {"text": WORD * 10 * SECONDS, "chunks": 8 * SECONDS, "delay_ms": 125}
    stage.provider.script(MODEL, [BULK])
    async with crowded(stage) as service:
        bulk = await service.send("ses_bulk", "Much.", agentId="clerk")
        assert bulk["status"] == "COMPLETED"
        stage.provider.script(MODEL, [long])
        base = await Base.of(stage)
        live = await service.send("ses_live", "Slowly.", wait=0, agentId="clerk")
        near = [TurnReader(service.client, live["turnId"]) for _ in range(NORMAL + CUT)]
        bulk_path = f"/turns/{bulk['turnId']}/events"
        cut: list[bool] = []

        async with asyncio.TaskGroup() as tasks:
            for n, reader in enumerate(near):
                if n < NORMAL:
                    tasks.create_task(comes_back(reader.read_to_the_end))
                else:
                    chance = Random(n)  # noqa: S311 - to repeat, not to hide
                    cut_off = partial(reader.read_cut_at_random, chance, longest=LARGEST_EVENT)
                    tasks.create_task(comes_back(cut_off))
            slow = [
                tasks.create_task(reads_slowly(service, bulk["turnId"], 0.01 + n / 1_000))
                for n in range(SLOW)
            ]
            for _ in range(STALLED):
                tasks.create_task(stalls(service, bulk_path, cut))
            for n in range(VANISHING):
                tasks.create_task(vanishes(service, bulk_path, after=n / 10))
            asking = tasks.create_task(asks_meanwhile(stage, service, live["turnId"]))

        await all_are_gone(service)
        await holds(stage, base)
        answered, most = asking.result()

    turns = {
        record.turn.identity.turn_id: record
        for record in await check_everything(stage.dsn, stage.ledger)
    }
    for reader in near:
        check_reading(reader.received, turns[live["turnId"]].journal)
    for reading in slow:
        check_reading(reading.result().received, turns[bulk["turnId"]].journal)
    assert cut == [True] * STALLED
    assert answered >= size(5, soak=SECONDS)
    assert most <= POOL + 3  # the pool, the listener, the heartbeat, and the one that counts


async def reads_slowly(service: Service, turn_id: str, pause: float) -> TurnReader:
    reader = TurnReader(service.client, turn_id, pause_seconds=pause)
    await comes_back(reader.read_to_the_end)
    return reader


async def comes_back(reading: Callable[[], Awaitable[None]]) -> None:
    """Read to the end, and go on behind the last id when the connection was cut."""
    while True:
        with suppress(httpx.ReadError, httpx.RemoteProtocolError):
            return await reading()


async def stalls(service: Service, path: str, cut: list[bool]) -> None:
    """Takes nothing until it must have been cut."""
    async with asked(service.url, path) as connection:
        await asyncio.sleep(STALLED_SECONDS * 2.5)
        cut.append(await was_cut(connection))


async def vanishes(service: Service, path: str, *, after: float) -> None:
    async with asked(service.url, path) as connection:
        await take(connection, 4_096)
        await asyncio.sleep(after)
        vanish(connection)


async def asks_meanwhile(stage: Stage, service: Service, turn_id: str) -> tuple[int, int]:
    """Ordinary requests until the turn has ended: how many, and the most connections seen."""
    answered = most = 0
    until = time.monotonic() + SECONDS
    status = "RUNNING"
    while status in ("READY", "RUNNING") or time.monotonic() < until:
        status = str((await service.turn(turn_id))["status"])
        answered += 1
        held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        most = max(most, int(await query(stage.dsn, held)))
        await asyncio.sleep(0.2)  # a caller who looks now and then
    return answered, most


async def all_are_gone(service: Service) -> None:
    """Until nobody follows anything."""

    async def nobody_reads() -> bool:
        return service.runtime.services.journals.is_idle

    await eventually(nobody_reads, timeout_seconds=30)


async def holds(stage: Stage, base: Base) -> None:
    """Until files and connections are back at what they were."""

    async def is_back() -> bool:
        now = await Base.of(stage)
        return now.files <= base.files + 4 and now.connections <= max(base.connections, POOL + 3)

    await eventually(is_back, timeout_seconds=30)


async def test_reported_080_idle_streams_hold_no_connection_and_outlive_the_databases_absence(
    stage: Stage,
) -> None:
    """200 streams of a waiting turn; all of our connections are ended under them."""
    stage.provider.script(MODEL, [{"text": "Done.", "faults": [QUOTA]}])
    async with crowded(stage) as service:
        waiting = await service.send("ses_1", "Go.", agentId="clerk")
        place = str(waiting["version"])
        readers = [TurnReader(service.client, waiting["turnId"], last_id=place) for _ in range(200)]
        async with asyncio.TaskGroup() as tasks:
            for reader in readers:
                tasks.create_task(comes_back(reader.read_to_the_end))
            await asyncio.gather(*(service.turn(waiting["turnId"]) for _ in range(100)))
            idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
            assert await query(stage.dsn, idle) == 0
            await query(stage.dsn, _END_THEM_ALL)

            async def is_resumed() -> bool:
                body: dict[str, object] = {"failureId": waiting["failureId"]}
                answer = await service.resume(waiting["turnId"], body, wait=0)
                return answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE

            await eventually(is_resumed)

    expected = None
    for reader in readers:
        ids = [event["id"] for event in reader.received if event["type"] != "MODEL_TEXT"]
        expected = expected or ids
        assert ids == expected
        assert reader.received[-1]["type"] == "TURN_COMPLETED"


_END_THEM_ALL = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
