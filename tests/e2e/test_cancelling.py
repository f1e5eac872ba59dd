"""Cancelling a turn over HTTP, whatever it is doing and whatever ends in the same moment."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from app.agents import Agent, RetryPolicy
from app.tools import tool
from tests.e2e.conftest import Stage
from tests.e2e.test_interruptions import began
from tests.providers.raw_server import event_stream, sending
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.service import Service, running_service, settings_for_tests
from tests.support.sse_reader import TurnReader, check_reading
from tests.support.story import MODEL, Ledger, clerk

BEGINNING = b'data: {"choices":[{"index":0,"delta":{"content":"It all began"}}]}\n\n'
PAY = {"id": "A", "name": "pay_slowly", "arguments": '{"amount": 9}'}
LATER = RetryPolicy(
    max_retries=3, initial_delay=timedelta(hours=1), max_delay=timedelta(hours=1), jitter="none"
)


async def test_a_cancellation_hangs_up_on_the_provider_within_two_seconds(
    database_dsn: str, tmp_path: Path
) -> None:
    async with sending(event_stream(BEGINNING), then_waits=True) as provider:
        settings = settings_for_tests(tmp_path, openai_base_url=provider.base_url)
        agent = Agent(id="teller", instructions="", model="any")
        async with running_service(database_dsn, settings, agents=[agent]) as service:
            sent = await service.send("ses_1", "Tell me.", wait=0, agentId="teller")
            reader = TurnReader(service.client, sent["turnId"])
            await reader.read(until=lambda event: event["type"] == "MODEL_TEXT")
            async with asyncio.timeout(2):
                answer = await service.client.post(f"/turns/{sent['turnId']}/cancel")
                await provider.client_left.wait()
            ended = await service.at_rest(sent["turnId"])
            again = await service.client.post(f"/turns/{sent['turnId']}/cancel")
            await reader.read_to_the_end()

    assert answer.status_code == 202
    assert ended["status"] == "CANCELLED"
    assert again.status_code == 200
    assert again.json()["version"] == ended["version"]
    (record,) = await check_everything(database_dsn, Ledger(tmp_path))
    check_reading(reader.received, record.journal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A turn whose cancellation is asked for while its tool runs behind the gate."""

    service: Service
    turn_id: str
    answer: dict[str, Any]

    async def cancel_again(self) -> dict[str, Any]:
        answer = await self.service.client.post(f"/turns/{self.turn_id}/cancel")
        assert answer.status_code == 202, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def types(self) -> list[str]:
        """Of all events, once the turn has ended."""
        reader = TurnReader(self.service.client, self.turn_id)
        await reader.read_to_the_end()
        return reader.types


@asynccontextmanager
async def asked_for(stage: Stage, agent: Agent | None = None) -> AsyncGenerator[Asked]:
    stage.provider.script(MODEL, [{"calls": [PAY]}, {"text": "never"}])
    agents = [agent or clerk(stage.ledger)]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        sent = await service.send("ses_1", "Pay it.", wait=0, agentId="clerk", messageId="m1")
        await eventually(lambda: began(stage, "pay_slowly"))
        answer = await service.client.post(f"/turns/{sent['turnId']}/cancel")
        assert answer.status_code == 202, answer.text
        yield Asked(service=service, turn_id=sent["turnId"], answer=answer.json())


async def test_case_122_a_second_cancellation_says_nothing_new(stage: Stage) -> None:
    async with asked_for(stage) as asked:
        again = await asked.cancel_again()
        stage.ledger.open_gate()
        types = await asked.types()

    assert asked.answer["cancelRequested"]
    assert again["version"] == asked.answer["version"]
    cancel = [action for action in again["actions"] if action["command"] == "CANCEL"]
    assert cancel == [{"command": "CANCEL", "enabled": False, "reason": "already_requested"}]
    assert types.count("CANCELLATION_REQUESTED") == 1
    assert types[-1] == "TURN_CANCELLED"


async def test_case_123_an_answer_that_comes_with_the_cancellation_is_dropped(
    stage: Stage,
) -> None:
    slowly = {"text": "I pay it now. " * 20, "chunks": 40, "delay_ms": 20, "calls": [PAY]}
    stage.provider.script(MODEL, [slowly, {"text": "never"}])
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        sent = await service.send("ses_1", "Pay it.", wait=0, agentId="clerk")
        reader = TurnReader(service.client, sent["turnId"])
        await reader.read(until=lambda event: event["type"] == "MODEL_TEXT")
        await service.client.post(f"/turns/{sent['turnId']}/cancel")
        ended = await service.at_rest(sent["turnId"])
        said = await service.client.get("/conversations/ses_1/messages")

    assert ended["status"] == "CANCELLED"
    assert ended["finalOutput"] is None
    assert [item["role"] for item in said.json()["items"]] == ["user", "closing"]
    assert stage.ledger.tools() == []
    await check_everything(stage.dsn, stage.ledger)


async def test_case_124_a_tool_that_ends_after_the_cancellation_keeps_its_result(
    stage: Stage,
) -> None:
    async with asked_for(stage) as asked:
        stage.ledger.open_gate()
        types = await asked.types()
        said = await asked.service.client.get("/conversations/ses_1/messages")

    items = said.json()["items"]
    assert [item["role"] for item in items] == ["user", "assistant", "tool", "closing"]
    assert (items[2]["outcome"], items[2]["content"]) == ("completed", "paid 9 at last")
    assert types[-4:] == ["TOOL_COMPLETED", "STEP_COMPLETED", "MESSAGE_ADDED", "TURN_CANCELLED"]
    assert len(stage.provider.requests(MODEL)) == 1
    await check_everything(stage.dsn, stage.ledger)


async def test_case_125_a_tool_that_raises_after_the_cancellation_fails_and_retries_nothing(
    stage: Stage,
) -> None:
    @tool(effect="reads", on_error="retry_then_fail", retry=LATER)
    async def pay_slowly(amount: int) -> str:
        """Fail, in time."""
        del amount
        entered.append("once")
        await stage.ledger.passed_gate()
        raise OSError("no route")

    entered: list[str] = []
    agent = replace(clerk(stage.ledger), tools=[pay_slowly])
    stage.provider.script(MODEL, [{"calls": [PAY]}, {"text": "never"}])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        sent = await service.send("ses_1", "Pay it.", wait=0, agentId="clerk")
        await eventually(lambda: is_filled(entered))
        await service.client.post(f"/turns/{sent['turnId']}/cancel")
        stage.ledger.open_gate()
        ended = await service.at_rest(sent["turnId"])

    assert ended["status"] == "CANCELLED"
    assert ended["counters"]["retries"] == 0
    assert entered == ["once"]


async def is_filled(entered: list[str]) -> bool:
    return bool(entered)


async def test_case_127_a_caller_who_waits_no_longer_leaves_the_cancellation_asked_for(
    stage: Stage,
) -> None:
    async with asked_for(stage) as asked:
        waited = await asked.service.send("ses_1", "Pay it.", wait=1, messageId="m1")
        stage.ledger.open_gate()
        ended = await asked.service.at_rest(asked.turn_id)

    assert (waited["turnId"], waited["status"]) == (asked.turn_id, "RUNNING")
    assert waited["cancelRequested"]
    assert ended["status"] == "CANCELLED"
