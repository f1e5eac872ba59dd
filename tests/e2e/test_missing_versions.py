"""A turn whose agent is not here any more waits; it can be seen, and it can be ended."""

from pathlib import Path

from app.agents import Agent
from tests.support.polling import eventually
from tests.support.provider import RunningProvider, running_provider
from tests.support.service import running_service, settings_for_tests

HANGS: list[dict[str, object]] = [{"text": "never", "faults": [{"times": 9, "hang": True}]}]
REFUSES: list[dict[str, object]] = [
    {"text": "never", "faults": [{"times": 9, "status": 503, "body": {}}]}
]


def teller(version: str) -> Agent:
    return Agent(id="teller", version=version, instructions="", model="tales")


async def test_a_turn_at_work_whose_version_is_gone_is_cancelled_when_somebody_asks(
    database_dsn: str, tmp_path: Path
) -> None:
    async with running_provider() as provider:
        provider.script("tales", HANGS)
        settings = settings_for_tests(tmp_path, openai_base_url=provider.base_url)
        async with running_service(database_dsn, settings, agents=[teller("1")]) as service:
            sent = await service.send("c1", "Tell me.", wait=0, agentId="teller")
            await eventually(lambda: _asked(provider))
        async with running_service(database_dsn, settings, agents=[teller("2")]) as service:
            answer = await service.client.post(f"/turns/{sent['turnId']}/cancel")
            ended = await service.at_rest(sent["turnId"])
            provider.script("tales", [{"text": "never"}, {"text": "Once upon a time."}])
            after = await service.send("c1", "Tell me.", agentId="teller")

    assert answer.status_code == 202
    assert ended["status"] == "CANCELLED"
    assert after["status"] == "COMPLETED"


async def _asked(provider: RunningProvider) -> bool:
    """The hanging request is on its way, though not answered."""
    return bool(provider.requests("tales"))


async def test_a_waiting_turn_whose_version_is_gone_offers_only_what_would_be_accepted(
    database_dsn: str, tmp_path: Path
) -> None:
    async with running_provider() as provider:
        provider.script("tales", REFUSES)
        settings = settings_for_tests(tmp_path, openai_base_url=provider.base_url)
        async with running_service(database_dsn, settings, agents=[teller("1")]) as service:
            waiting = await service.send("c1", "Tell me.", agentId="teller")
        async with running_service(database_dsn, settings, agents=[teller("2")]) as service:
            turn = await service.turn(waiting["turnId"])
            refused = await service.resume(
                waiting["turnId"], {"failureId": waiting["failureId"]}, wait=0
            )
            unchanged = await service.turn(waiting["turnId"])

    assert {(a["command"], a["enabled"]) for a in turn["actions"]} == {
        ("RETRY_MODEL", False),
        ("MESSAGE", False),
        ("REPLAN_WITH_MESSAGE", False),
        ("CANCEL", True),
    }
    assert refused.status_code == 409
    assert refused.json()["code"] == "agent_version_unavailable"
    assert unchanged["version"] == waiting["version"]
