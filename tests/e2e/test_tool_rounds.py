"""Rounds of tools, over HTTP: what the next attempt knows, and what becomes of the other calls."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import orjson

from app.agents import Agent, RetryPolicy
from app.tools import NotDone, ToolContext, tool
from tests.e2e.conftest import Stage
from tests.support.oracles import check_history, records
from tests.support.service import Service, running_service

HOURLY = RetryPolicy(max_retries=1, initial_delay=timedelta(hours=1), max_delay=timedelta(days=1))


def asks_for(*names: str) -> list[dict[str, object]]:
    """The model asks for these tools, as calls A, B and so on, and then says that it is done."""
    calls = [{"id": chr(ord("A") + n), "name": name} for n, name in enumerate(names)]
    return [{"calls": [call | {"arguments": "{}"} for call in calls]}, {"text": "Done."}]


async def outcomes(service: Service, conversation: str) -> list[tuple[str, str]]:
    """Every result of the conversation, in its place."""
    page = await service.client.get(f"/conversations/{conversation}/messages")
    items: list[dict[str, Any]] = page.json()["items"]
    return [(item["callId"], item["outcome"]) for item in items if item["role"] == "tool"]


async def test_case_41_only_the_failed_call_runs_again_and_it_sees_what_came_before(
    stage: Stage,
) -> None:
    seen: list[ToolContext] = []
    looked: list[str] = []

    @tool(effect="reads")
    def look_up() -> str:
        looked.append("look_up")
        return "found"

    @tool(effect="idempotent", on_error="retry_then_model", retry=HOURLY)
    def book(call: ToolContext) -> str:
        seen.append(call)
        if call.attempt == 1:
            raise TimeoutError("the hotel does not answer")
        return "booked"

    agent = Agent(id="clerk", instructions="", model="story", tools=[look_up, book])
    stage.provider.script("story", asks_for("look_up", "book"))
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Book it.", agentId="clerk")
        done = await service.resume(waiting["turnId"], {"command": "CONTINUE"})
        results = await outcomes(service, "c1")

    assert (waiting["status"], waiting["cursor"]) == ("RETRY_SCHEDULED", "PROCESS_TOOLS")
    assert done.json()["status"] == "COMPLETED"
    assert results == [("A", "completed"), ("B", "completed")]
    assert looked == ["look_up"]
    assert len(stage.provider.requests("story")) == 2
    first, second = seen
    assert (first.attempt, first.is_replay, first.previous_error) == (1, False, None)
    assert first.scheduled_at is None
    assert (second.attempt, second.is_replay) == (2, True)
    assert second.previous_error == "TimeoutError: the hotel does not answer"
    assert second.scheduled_at == datetime.fromisoformat(waiting["retryAt"])
    assert second.idempotency_key == first.idempotency_key


async def test_case_42_a_message_closes_every_open_call_in_order_and_the_tool_does_not_run(
    stage: Stage,
) -> None:
    entered: list[str] = []

    @tool(effect="reads", on_error="retry_then_model", retry=HOURLY)
    def fetch() -> str:
        entered.append("fetch")
        raise ConnectionError

    agent = Agent(id="clerk", instructions="", model="story", tools=[fetch])
    stage.provider.script("story", asks_for("fetch", "fetch"))
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Fetch both.", agentId="clerk")
        done = await service.send("c1", "Never mind.")
        page = await service.client.get("/conversations/c1/messages")

    assert waiting["status"] == "RETRY_SCHEDULED"
    assert (done["turnId"], done["status"]) == (waiting["turnId"], "COMPLETED")
    said = [(item["role"], item.get("outcome")) for item in page.json()["items"]]
    assert said[2:5] == [("tool", "superseded"), ("tool", "superseded"), ("user", None)]
    assert entered == ["fetch", "fetch"]


async def test_an_error_gives_up_the_calls_behind_it_where_the_tool_says_so(stage: Stage) -> None:
    entered: list[str] = []

    @tool(effect="reads")
    def look_up() -> str:
        entered.append("look_up")
        return "found"

    @tool(block_following=True)
    def reserve() -> str:
        entered.append("reserve")
        raise NotDone("no room is free")

    @tool
    def pay() -> str:
        entered.append("pay")
        return "paid"

    agent = Agent(id="clerk", instructions="", model="story", tools=[look_up, reserve, pay])
    stage.provider.script("story", asks_for("look_up", "reserve", "pay", "look_up"))
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        done = await service.send("c1", "Reserve, then pay.", agentId="clerk")
        results = await outcomes(service, "c1")

    assert done["status"] == "COMPLETED"
    assert sorted(entered) == ["look_up", "reserve"]
    assert results == [
        ("A", "completed"),
        ("B", "not_started"),
        ("C", "not_started"),
        ("D", "not_started"),
    ]
    async with records(stage.dsn) as found:
        check_history(await found.of(done["turnId"]))


async def test_an_agent_that_does_not_wait_fails_with_its_failures_on_record(stage: Stage) -> None:
    down = {"times": 9, "status": 503}
    agent = Agent(
        id="batch",
        instructions="",
        model="story",
        retry=RetryPolicy(max_retries=1, initial_delay=timedelta(milliseconds=30)),
        on_model_failure="fail",
    )
    stage.provider.script("story", [{"text": "", "faults": [down]}])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        sent = await service.send("c1", "Sum it up.", wait=0, agentId="batch")
        # The stream ends with the turn's last event, whatever it rests at on the way.
        events = await service.client.get(f"/turns/{sent['turnId']}/events")
        turn = await service.turn(sent["turnId"])
        failures = await service.client.get(f"/turns/{sent['turnId']}/failures")
        retried = await service.resume(sent["turnId"], {"failureId": "any"})
        again = await service.send("c1", "Again.", wait=0)

    assert "event: RETRY_SCHEDULED" in events.text
    assert (turn["status"], turn["failureId"], turn["actions"]) == ("FAILED", None, [])
    assert turn["message"].startswith("The model failed, and this agent does not wait for it.")
    assert [item["type"] for item in failures.json()["items"]] == ["UNAVAILABLE", "UNAVAILABLE"]
    assert retried.json()["code"] == "turn_terminal"
    assert again["turnId"] != turn["turnId"]


async def test_case_142_results_stand_in_the_order_of_the_calls_whichever_tool_was_quicker(
    stage: Stage,
) -> None:
    gate = asyncio.Event()

    @tool(effect="writes")
    async def slow() -> str:
        await gate.wait()
        return "slow"

    @tool(effect="writes")
    async def quick() -> str:
        return "quick"

    agent = Agent(id="clerk", instructions="", model="story", tools=[slow, quick])
    stage.provider.script("story", asks_for("slow", "quick"))
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        sent = await service.send("c1", "Both.", wait=0, agentId="clerk")
        events = f"/turns/{sent['turnId']}/events"
        ended: list[str] = []
        async with service.client.stream("GET", events) as stream:
            async for line in stream.aiter_lines():
                if line == "event: TOOL_COMPLETED":
                    gate.set()  # the other one may end now
                if line.startswith("data: ") and '"type":"TOOL_COMPLETED"' in line:
                    ended.append(orjson.loads(line.removeprefix("data: "))["data"]["callId"])
        results = await outcomes(service, "c1")

    assert ended == ["B", "A"]
    assert results == [("A", "completed"), ("B", "completed")]
    body: Any = stage.provider.requests("story")[-1]["body"]
    told = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    assert told == ["slow", "quick"]
