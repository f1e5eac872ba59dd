"""An orderly stop, as callers see it."""

import asyncio
from pathlib import Path

import httpx

from tests.support.polling import eventually
from tests.support.service import Service, running_service, settings_for_tests


async def test_a_caller_who_waits_is_answered_when_the_process_stops(
    database_dsn: str, tmp_path: Path
) -> None:
    settings = settings_for_tests(tmp_path)
    async with running_service(database_dsn, settings, with_worker=False) as service:
        waiting = asyncio.create_task(service.send("c1", "hello", wait=60))
        await eventually(lambda: _is_there(service))
        service.runtime.stopping.set()
        turn = await waiting

    assert turn["status"] == "READY"


async def _is_there(service: Service) -> bool:
    answer: httpx.Response = await service.client.get("/conversations/c1")
    return answer.status_code == 200
