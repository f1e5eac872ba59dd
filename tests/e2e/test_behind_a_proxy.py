"""Streams through nginx with its default settings, which buffer answers and time out in silence."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx

from tests.e2e.conftest import Stage
from tests.e2e.test_event_streams import LONGEST, SLOW_ANSWER, replica, the_only_turn
from tests.support.nginx import nginx_in_front_of
from tests.support.service import Service, signed_in
from tests.support.sizes import size
from tests.support.sse_reader import SseParser, TurnReader, check_reading
from tests.support.story import MODEL

SILENT_SECONDS = size(1, soak=150)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """Two services, and a client that reaches them through the proxy."""

    service: Service
    client: httpx.AsyncClient


@asynccontextmanager
async def behind_nginx(stage: Stage, folder: Path) -> AsyncGenerator[Behind]:
    async with (
        replica(stage) as one,
        replica(stage, with_worker=False) as two,
        nginx_in_front_of([one.url, two.url], folder) as url,
        signed_in(url) as client,
    ):
        client.timeout = httpx.Timeout(200)
        yield Behind(service=one, client=client)


async def test_reported_076_events_come_through_a_proxy_as_they_happen(
    stage: Stage, tmp_path: Path
) -> None:
    slow = {"text": "one two ", "chunks": 2, "delay_ms": SILENT_SECONDS * 1_000}
    stage.provider.script(MODEL, [slow])
    async with behind_nginx(stage, tmp_path) as behind:
        sent = await behind.service.send("ses_1", "Go.", wait=0, agentId="clerk")
        began, came = time.monotonic(), dict[str, float]()
        path = f"/turns/{sent['turnId']}/events"
        async with behind.client.stream("GET", path) as answer:
            assert "content-encoding" not in answer.headers
            parser = SseParser()
            async for piece in answer.aiter_raw():
                now = time.monotonic() - began
                for event in parser.feed(piece):
                    came.setdefault(event.type, now)

    assert came["TURN_COMPLETED"] - came["MODEL_STARTED"] >= SILENT_SECONDS * 0.9
    assert came["TURN_STARTED"] < came["TURN_COMPLETED"]


async def test_readers_behind_a_proxy_that_are_cut_have_everything_once(
    stage: Stage, tmp_path: Path
) -> None:
    stage.provider.script(MODEL, [SLOW_ANSWER])
    async with behind_nginx(stage, tmp_path) as behind:
        sent = await behind.service.send("ses_1", "Go.", wait=0, agentId="clerk")
        whole, cut = (TurnReader(behind.client, sent["turnId"]) for _ in range(2))
        await whole.read_to_the_end()
        await cut.read_cut_at_random(Random(5), longest=LONGEST)  # noqa: S311 - to repeat

    for reader in (whole, cut):
        check_reading(reader.received, (await the_only_turn(stage)).journal)
    assert whole.connections == 2
    assert cut.connections > 2
