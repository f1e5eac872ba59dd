"""`GET /agents`, and turns whose version of an agent is not there."""

from pathlib import Path

from app.agents import Agent
from tests.http.rig import AGENTS, Rig, assert_problem, fresh_id, running_rig

OLD = Agent(id="clerk", version="1", instructions="Be brief.", model="quick")
NEW = Agent(id="clerk", version="2", instructions="Be brief.", model="quick")


async def test_the_agents_are_listed_the_default_one_first(rig: Rig) -> None:
    answer = await rig.client.get("/agents")

    items = answer.json()["items"]
    assert answer.json()["nextCursor"] is None
    assert [item["agentId"] for item in items] == ["assistant", *(agent.id for agent in AGENTS)]
    assert {"agentId", "version", "model", "tools", "outputSchema"} == set(items[0])
    assert {"name", "description", "effect"} == set(items[0]["tools"][0])


async def test_case_130_a_turn_whose_version_is_gone_is_refused_and_never_run_with_another(
    database_dsn: str, tmp_path: Path
) -> None:
    conversation = fresh_id()
    async with running_rig(database_dsn, tmp_path, agents=[OLD]) as before:
        waiting = await before.waiting(conversation)
    async with running_rig(database_dsn, tmp_path, agents=[NEW]) as after:
        path = f"/turns/{waiting['turnId']}"
        found = await after.service.turn(waiting["turnId"])
        refused = [
            await after.post(f"{path}/resume", {"failureId": waiting["failureId"]}),
            await after.post(f"{path}/resume", {"failureId": "another"}),
            await after.post(f"/conversations/{conversation}/messages", {"content": "hi"}),
        ]
        repeated = await after.post(
            f"/conversations/{conversation}/messages",
            {
                "content": (await _said(after, conversation))[0],
                "messageId": waiting["messageId"],
            },
        )
        kept = await after.service.turn(waiting["turnId"])
        cancelled = await after.post(f"{path}/cancel")
        fresh = await after.completed(conversation)

    assert found["version"] == kept["version"] == waiting["version"]
    for answer in refused:
        problem = assert_problem(answer, 409, "agent_version_unavailable")
        assert problem["currentStatus"] == "WAITING_FOR_MODEL"
        assert problem["currentFailureId"] == waiting["failureId"]
        assert problem["allowedActions"] == found["actions"]
    assert repeated.json()["turnId"] == waiting["turnId"]
    assert cancelled.json()["status"] == "CANCELLED"
    assert (fresh["status"], fresh["agentVersion"]) == ("COMPLETED", "2")


async def test_a_command_on_a_call_is_refused_by_the_turns_state_also_without_its_agent(
    database_dsn: str, tmp_path: Path
) -> None:
    reject = {"command": "REJECT_TOOL", "callId": "call_1", "reason": "too dear"}
    async with running_rig(database_dsn, tmp_path, agents=[OLD]) as before:
        waiting = await before.waiting()
    async with running_rig(database_dsn, tmp_path, agents=[NEW]) as after:
        answer = await after.post(f"/turns/{waiting['turnId']}/resume", reject)

    assert_problem(answer, 409, "wrong_command")


async def _said(rig: Rig, conversation: str) -> list[str]:
    answer = await rig.client.get(f"/conversations/{conversation}/messages")
    return [item["content"] for item in answer.json()["items"]]
