"""Cancelling a turn over HTTP, whatever it is doing."""

import asyncio
from pathlib import Path

from app.agents import Agent
from tests.providers.raw_server import event_stream, sending
from tests.support.oracles import check_everything
from tests.support.service import running_service, settings_for_tests
from tests.support.sse_reader import TurnReader, check_reading
from tests.support.story import Ledger

BEGINNING = b'data: {"choices":[{"index":0,"delta":{"content":"It all began"}}]}\n\n'


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
