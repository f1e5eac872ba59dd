"""Readers that are cut again and again, at two processes, while workers are overtaken and die."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx
import pytest

from app.ports import JournalRow
from app.store.pool import connected
from app.store.turns import PostgresTurns
from app.turn.ids import TurnId
from tests.e2e.conftest import Stage
from tests.e2e.test_event_streams import replica
from tests.support.deaths import let_claims_run_out
from tests.support.polling import eventually
from tests.support.processes import ServingProcess, serving
from tests.support.service import Service, SignedIn
from tests.support.sizes import size
from tests.support.sse_reader import TurnReader, check_reading, some_bytes
from tests.support.story import MODEL, THREE_CALLS

SCHEDULES = size(30, soak=500)
WORDS = "Größe 漢字 🙂 and so on, "
ANSWER = WORDS * 60
LONGEST = 6_000
"""Of a connection, in bytes: more than the largest event."""
AT_A_TIME = 10


def script(chance: Random) -> list[dict[str, Any]]:
    """A round of tools or none, and an answer that takes between nothing and half a second."""
    answer = {
        "reasoning": "First I think. " * 3,
        "text": ANSWER,
        "chunks": chance.choice((1, 7, 60)),
        "delay_ms": chance.choice((0, 2, 8)),
    }
    return [THREE_CALLS, answer] if chance.random() < 0.5 else [answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One turn, and one reader of it that is cut and moves."""

    seed: int
    reader: TurnReader
    turn_id: str

    def check(self, journal: list[JournalRow]) -> None:
        check_reading(self.reader.received, journal)
        answers = [
            event["data"]["text"]
            for event in self.reader.received
            if event["type"] == "MODEL_COMPLETED"
        ]
        assert answers[-1] == ANSWER, f"seed {self.seed}"


async def read(seed: int, services: list[SignedIn]) -> Schedule:
    """Send a message somewhere, and read what comes of it now here, now there."""
    chance = Random(seed)  # noqa: S311 - to repeat, not to hide
    service = chance.choice(services)
    sent = await service.send(f"ses_{seed}", "Do it.", wait=0, agentId="clerk")
    reader = TurnReader(service.client, sent["turnId"])
    style = chance.choice(("every event", "any byte"))
    while True:
        reader.client = chance.choice(services).client
        if style == "every event":
            more = await reader.read(until=lambda _: True)
        else:
            more = await reader.read(at_most_bytes=some_bytes(chance, LONGEST))
        if not more:
            return Schedule(seed=seed, reader=reader, turn_id=sent["turnId"])


@asynccontextmanager
async def two_processes(stage: Stage) -> AsyncGenerator[list[Service]]:
    async with replica(stage) as one, replica(stage) as two:
        yield [one, two]


async def test_case_136_readers_cut_anywhere_have_every_event_once_and_the_text_that_is_stored(
    stage: Stage,
) -> None:
    """Each schedule is a seed; now and then all workers are taken for dead and overtaken."""
    async with two_processes(stage) as services:
        done: list[Schedule] = []
        for first in range(0, SCHEDULES, AT_A_TIME):
            chance = Random(first)  # noqa: S311 - to repeat, not to hide
            stage.provider.script(MODEL, script(chance), strict=False)
            async with asyncio.TaskGroup() as tasks:
                reading = [
                    tasks.create_task(read(seed, [*services]))
                    for seed in range(first, first + AT_A_TIME)
                ]
                if chance.random() < 0.5:
                    await let_claims_run_out(stage.dsn)
            done += [task.result() for task in reading]

    async with connected(stage.dsn, size=1) as database:
        turns = PostgresTurns(database)
        for schedule in done:
            rows = await turns.journal(TurnId(schedule.turn_id), after=0, limit=1_000)
            schedule.check(list(rows))
    assert len(done) == SCHEDULES


@pytest.mark.parametrize("seed", range(size(1, soak=20)))
async def test_readers_miss_nothing_when_the_process_they_read_from_is_killed(
    stage: Stage, seed: int
) -> None:
    chance = Random(seed)  # noqa: S311 - to repeat, not to hide
    slow = {"text": ANSWER * 4, "chunks": 100, "delay_ms": 20}
    stage.provider.script(MODEL, [slow], strict=False)
    place = stage.dsn, stage.ledger, stage.provider.base_url
    async with serving(*place) as doomed, serving(*place) as heir:
        sent = await doomed.send("ses_1", "Do it.", wait=0, agentId="clerk")
        readers = [TurnReader(doomed.client, sent["turnId"]) for _ in range(4)]

        async with asyncio.TaskGroup() as tasks:
            for reader in readers:
                tasks.create_task(to_the_end(reader, doomed, heir))
            await readers_have(readers, chance.randint(200, 3_000))
            await doomed.kill()

    async with connected(stage.dsn, size=1) as database:
        rows = await PostgresTurns(database).journal(TurnId(sent["turnId"]), after=0, limit=1_000)
    for reader in readers:
        check_reading(reader.received, rows)
        assert reader.received[-1]["type"] == "TURN_COMPLETED"


async def to_the_end(reader: TurnReader, doomed: ServingProcess, heir: ServingProcess) -> None:
    """Read from the one until it is gone, and then from the other."""
    while True:
        try:
            if not await reader.read():
                return
        except httpx.TransportError:
            assert doomed.process.returncode is not None or reader.client is doomed.client
            reader.client = heir.client


async def readers_have(readers: list[TurnReader], characters: int) -> None:
    """Until one of them has so much of the answer."""

    async def have() -> bool:
        pieces = [e["data"] for r in readers for e in r.received if e["type"] == "MODEL_TEXT"]
        return any(piece["offset"] >= characters for piece in pieces)

    await eventually(have, timeout_seconds=30)
