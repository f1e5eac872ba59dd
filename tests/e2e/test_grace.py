"""Tools that do not end when their turn is paused or cancelled, over HTTP (T53)."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from app.agents import Agent
from app.settings import Settings
from tests.e2e.conftest import Stage
from tests.e2e.test_interruptions import began
from tests.providers.raw_server import event_stream, sending
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.service import Service, running_service, settings_for_tests
from tests.support.sse_reader import TurnReader
from tests.support.story import MODEL, Ledger, clerk

LOOK = {"id": "A", "name": "look_up_slowly", "arguments": '{"what": "it"}'}
PAY = {"id": "B", "name": "pay_slowly", "arguments": '{"amount": 9}'}
BEGINNING = b'data: {"choices":[{"index":0,"delta":{"content":"It all began"}}]}\n\n'


def hasty(stage: Stage) -> Settings:
    return stage.settings.model_copy(update={"tool_grace_seconds": 0.1})


@asynccontextmanager
async def at_work(
    stage: Stage, *calls: dict[str, str], settings: Settings | None = None
) -> AsyncGenerator[tuple[Service, str]]:
    """A turn whose tools are behind a gate that nobody opens."""
    stage.provider.script(MODEL, [{"calls": list(calls)}, {"text": "So be it."}])
    agents = [clerk(stage.ledger)]
    async with running_service(stage.dsn, settings or hasty(stage), agents=agents) as service:
        sent = await service.send("ses_1", "Do it.", wait=0, agentId="clerk")
        names = [call["name"] for call in calls]
        await eventually(lambda: began(stage, *names))
        yield service, sent["turnId"]


async def interruptions(service: Service, turn_id: str) -> dict[str, tuple[str, str]]:
    """What became of the calls, and why, by call."""
    answer = await service.client.get(f"/turns/{turn_id}/interruptions")
    items: list[dict[str, Any]] = answer.json()["items"]
    return {item["callId"]: (item["outcome"], item["reason"]) for item in items}


def given_up(answer: httpx.Response) -> dict[str, str | None]:
    """What a cancellation says of the calls, by call."""
    items: list[dict[str, Any]] = answer.json()["givenUp"]
    return {item["callId"]: item["outcome"] for item in items}


async def test_case_70_a_paused_turn_goes_on_with_the_model_behind_calls_that_were_stopped(
    stage: Stage,
) -> None:
    async with at_work(stage, LOOK, PAY) as (service, turn_id):
        await service.client.post(f"/turns/{turn_id}/pause")
        paused = await service.at_rest(turn_id)
        what = await interruptions(service, turn_id)
        answer = await service.resume(turn_id, {"command": "RESUME"})

    assert paused["status"] == "PAUSED"
    assert what == {"A": ("cancelled", "cut_off"), "B": ("unknown", "cut_off")}
    assert answer.json()["status"] == "COMPLETED"
    assert stage.ledger.tools() == ["look_up_slowly", "pay_slowly"]
    await check_everything(stage.dsn, stage.ledger)


async def test_case_124_a_cancellation_ends_a_turn_whose_tool_never_returns(stage: Stage) -> None:
    async with at_work(stage, LOOK, PAY) as (service, turn_id):
        asked = await service.client.post(f"/turns/{turn_id}/cancel")
        ended = await service.at_rest(turn_id)
        what = await interruptions(service, turn_id)
        again = await service.client.post(f"/turns/{turn_id}/cancel")

    assert ended["status"] == "CANCELLED"
    assert what == {"A": ("cancelled", "cut_off"), "B": ("unknown", "cut_off")}
    assert (asked.status_code, given_up(asked)) == (202, {"A": None, "B": None})
    assert (again.status_code, given_up(again)) == (200, {"A": "cancelled", "B": "unknown"})
    await check_everything(stage.dsn, stage.ledger)


async def test_within_its_grace_a_tool_still_gives_its_result(stage: Stage) -> None:
    async with at_work(stage, PAY, settings=stage.settings) as (service, turn_id):
        await service.client.post(f"/turns/{turn_id}/cancel")
        stage.ledger.open_gate()
        ended = await service.at_rest(turn_id)
        what = await interruptions(service, turn_id)

    assert ended["status"] == "CANCELLED"
    assert what == {}
    await check_everything(stage.dsn, stage.ledger)


async def test_a_pause_hangs_up_on_the_provider_within_two_seconds(
    database_dsn: str, tmp_path: Path
) -> None:
    async with sending(event_stream(BEGINNING), then_waits=True) as provider:
        settings = settings_for_tests(tmp_path, openai_base_url=provider.base_url)
        agent = Agent(id="teller", instructions="", model="any")
        async with running_service(database_dsn, settings, agents=[agent]) as service:
            sent = await service.send("ses_1", "Tell me.", wait=0, agentId="teller")
            reader = TurnReader(service.client, sent["turnId"])
            await reader.read(until=lambda event: event["type"] == "MODEL_TEXT")
            asked_at = time.monotonic()
            answer = await service.client.post(f"/turns/{sent['turnId']}/pause")
            await provider.client_left.wait()
            took = time.monotonic() - asked_at

    assert answer.json()["status"] == "PAUSED"
    assert took < 2
    await check_everything(database_dsn, Ledger(tmp_path))
