"""A reader may be cut anywhere, as often as it likes: it has everything once and in order."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from tests.e2e.conftest import Stage
from tests.support.deaths import let_claims_run_out
from tests.support.oracles import Record, check_everything
from tests.support.service import Service, running_service
from tests.support.sizes import size
from tests.support.sse_reader import TurnReader, check_reading, some_bytes
from tests.support.story import MODEL, QUOTA, THREE_CALLS, clerk

WORDS = "Größe 漢字 🙂 and so on, "
LONG_ANSWER = WORDS * 300
LONGEST = 24_000
"""Of a connection, in bytes: the largest event, which holds the whole answer, is half of it.

The answer is in the stream twice, as it grew and whole: no reading gets by without a cut.
"""
SLOW_ANSWER = {
    "reasoning": "First I think. " * 5,
    "text": LONG_ANSWER,
    "chunks": 100,
    "delay_ms": 4,
}


@pytest.mark.parametrize("seed", range(size(3, soak=100)))
async def test_a_reader_of_a_finished_turn_that_is_cut_at_random_has_everything_once(
    stage: Stage, seed: int
) -> None:
    outage = {"text": LONG_ANSWER, "chunks": 50, "faults": [QUOTA]}
    stage.provider.script(MODEL, [THREE_CALLS, outage])
    async with replica(stage) as service:
        waiting = await service.send("ses_1", "Do it.", agentId="clerk")
        await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        reader = TurnReader(service.client, waiting["turnId"])
        await reader.read_cut_at_random(Random(seed), longest=LONGEST)  # noqa: S311

    record = await the_only_turn(stage)
    check_reading(reader.received, record.journal)
    assert reader.connections > 1


async def test_readers_that_are_cut_while_the_answer_streams_have_every_character_once(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [THREE_CALLS, SLOW_ANSWER])
    async with replica(stage) as one, replica(stage, with_worker=False) as two:
        sent = await one.send("ses_1", "Do it.", wait=0, agentId="clerk")
        readers = [TurnReader(service.client, sent["turnId"]) for service in (one, two) * 4]
        await asyncio.gather(
            *(
                reader.read_cut_at_random(Random(n), longest=LONGEST)  # noqa: S311
                for n, reader in enumerate(readers)
            )
        )

    record = await the_only_turn(stage)
    for reader in readers:
        check_reading(reader.received, record.journal)
        assert reader.connections > 1
    assert final_text(readers[0].received) == LONG_ANSWER


async def test_a_reader_that_goes_from_one_replica_to_another_misses_nothing(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [SLOW_ANSWER])
    chance = Random(7)  # noqa: S311 - to repeat, not to hide
    async with replica(stage) as one, replica(stage, with_worker=False) as two:
        sent = await one.send("ses_1", "Do it.", wait=0, agentId="clerk")
        reader = TurnReader(one.client, sent["turnId"])
        while await reader.read(at_most_bytes=some_bytes(chance, LONGEST)):
            reader.client = chance.choice((one, two)).client

    check_reading(reader.received, (await the_only_turn(stage)).journal)


async def test_text_is_live_where_the_worker_is_and_comes_in_batches_elsewhere(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [SLOW_ANSWER])
    async with replica(stage) as one, replica(stage, with_worker=False) as two:
        sent = await one.send("ses_1", "Do it.", wait=0, agentId="clerk")
        near, far = (TurnReader(service.client, sent["turnId"]) for service in (one, two))
        await asyncio.gather(near.read_to_the_end(), far.read_to_the_end())

    record = await the_only_turn(stage)
    for reader in (near, far):
        check_reading(reader.received, record.journal)
    batches = record.types.count("MODEL_TEXT")
    assert far.types.count("MODEL_TEXT") == batches
    assert near.types.count("MODEL_TEXT") > 2 * batches


@pytest.mark.parametrize("attempt", range(3))
async def test_text_of_a_worker_that_was_overtaken_is_withdrawn_from_every_reader(
    stage: Stage, attempt: int
) -> None:
    stage.provider.script(MODEL, [SLOW_ANSWER])
    async with replica(stage) as one:
        sent = await one.send("ses_1", "Do it.", wait=0, agentId="clerk")
        early = TurnReader(one.client, sent["turnId"])
        await early.read(until=lambda event: event["data"].get("offset", 0) > 2_500 + attempt)
        await let_claims_run_out(stage.dsn)
        async with replica(stage) as two:
            near, far = (TurnReader(service.client, sent["turnId"]) for service in (one, two))
            await asyncio.gather(*(r.read_to_the_end() for r in (early, near, far)))

    record = await the_only_turn(stage)
    assert record.types.count("STEP_RECOVERED") == 1
    for reader in (early, near, far):
        check_reading(reader.received, record.journal)
    assert final_text(early.received) == LONG_ANSWER


@asynccontextmanager
async def replica(stage: Stage, *, with_worker: bool = True) -> AsyncGenerator[Service]:
    async with running_service(
        stage.dsn, stage.settings, agents=[clerk(stage.ledger)], with_worker=with_worker
    ) as service:
        yield service


async def the_only_turn(stage: Stage) -> Record:
    (record,) = await check_everything(stage.dsn, stage.ledger)
    return record


def final_text(received: list[dict[str, Any]]) -> str:
    answers: list[str] = [e["data"]["text"] for e in received if e["type"] == "MODEL_COMPLETED"]
    return answers[-1]
