"""A turn whose agent is not here any more waits; it can be seen, and it can be ended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from app.agents import Agent, Limits
from app.entrypoints.api import create_app
from app.ports import AgentCatalog, LoadedAgent
from app.turn.agent import Agent as CoreAgent
from app.turn.ids import AgentId, AgentVersion
from tests.e2e.conftest import Stage
from tests.e2e.test_interruptions import paused, records_of
from tests.http.rig import assert_problem, rows
from tests.support.polling import eventually
from tests.support.provider import RunningProvider, running_provider
from tests.support.service import running_service, settings_for_tests
from tests.support.story import clerk

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


async def test_a_message_queued_behind_a_turn_whose_version_is_gone_is_answered_by_the_current_one(
    database_dsn: str, tmp_path: Path
) -> None:
    said = {"content": "And then?", "messageId": "m2"}
    async with running_provider() as provider:
        provider.script("tales", HANGS)
        settings = settings_for_tests(tmp_path, openai_base_url=provider.base_url)
        async with running_service(database_dsn, settings, agents=[teller("1")]) as service:
            sent = await service.send("c1", "Tell me.", wait=0, agentId="teller")
            await eventually(lambda: _asked(provider))
        provider.script("tales", [{"text": "never"}, {"text": "Once upon a time."}])
        async with running_service(database_dsn, settings, agents=[teller("2")]) as service:
            path = "/conversations/c1/messages"
            refused = await service.client.post(path, json=said)
            queued = await service.client.post(path, json=said | {"whenRunning": "queue"})
            await service.client.post(f"/turns/{sent['turnId']}/cancel")
            ended = await service.at_rest(sent["turnId"])
            changes = {"limits": {"maxSteps": 9}}
            late = await service.resume(sent["turnId"], {"command": "RESUME", "changes": changes})
            again = await service.client.post(path, json=said)
            following = await service.at_rest(again.json()["turnId"])

    busy = assert_problem(refused, 409, "conversation_busy")  # it would run nothing (T7, T97)
    assert {"command": "MESSAGE", "enabled": False, "reason": "at_work"} in busy["allowedActions"]
    assert (queued.status_code, queued.json()["turnId"]) == (202, sent["turnId"])
    assert (ended["status"], ended["agentVersion"]) == ("CANCELLED", "1")
    assert_problem(late, 409, "turn_terminal")
    assert (following["status"], following["agentVersion"]) == ("COMPLETED", "2")


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


async def test_case_131_a_call_whose_tool_is_gone_fails_its_turn_and_is_not_tried_again(
    stage: Stage,
) -> None:
    async with paused(stage, version="1") as scene:
        turn_id = scene.turn["turnId"]
    # A release that has lost a tool under the old version, which a start refuses as a rule.
    await rows(stage.dsn, "DELETE FROM agents")
    whole = clerk(stage.ledger)
    without = [each for each in whole.tools if each.spec.name != "look_up"]
    agent = replace(whole, version="1", tools=without, limits=Limits(parallel_tools=1))
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        answer = await service.resume(turn_id, {"command": "RESUME"})
        records = await records_of(service, turn_id)

    assert answer.json()["status"] == "FAILED"
    assert answer.json()["counters"]["retries"] == 0
    assert [(r["callId"], r["reason"]) for r in records] == [
        ("B", "turn_failed"),
        ("C", "turn_failed"),
    ]
    assert stage.ledger.tools() == ["pay_slowly"]


@dataclass(frozen=True, slots=True)
class Substitutes:
    """A catalog that has an agent for everything: always the same."""

    catalog: AgentCatalog

    def current(self, agent_id: AgentId | None) -> LoadedAgent | None:
        return self.catalog.current(agent_id)

    def load(self, agent_id: AgentId, version: AgentVersion) -> LoadedAgent | None:
        del version
        return self.catalog.current(agent_id)

    def all(self) -> Sequence[CoreAgent]:
        return self.catalog.all()

    def versions(self) -> Sequence[tuple[AgentId, AgentVersion]]:
        return self.catalog.versions()


async def test_case_132_another_version_than_the_one_asked_for_is_as_good_as_none(
    stage: Stage,
) -> None:
    async with paused(stage, version="1") as scene:
        turn_id, version = scene.turn["turnId"], scene.turn["version"]
    agent = replace(clerk(stage.ledger), version="2")
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        services = service.runtime.services
        services = replace(services, catalog=Substitutes(services.catalog))
        app = create_app(replace(service.runtime, services=services))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app),
            base_url="http://turnkeeper",
            headers=service.client.headers,
        ) as client:
            refused = await client.post(f"/turns/{turn_id}/resume", json={"command": "RESUME"})
            turn = (await client.get(f"/turns/{turn_id}")).json()

    assert_problem(refused, 409, "agent_version_unavailable")
    assert (turn["version"], turn["agentVersion"]) == (version, "1")
    offered = {action["command"]: action["enabled"] for action in turn["actions"]}
    assert (offered["RESUME"], offered["CANCEL"]) == (False, True)
