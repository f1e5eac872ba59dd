"""What was reported of answers that broke, and of what they did to the history behind them.

The numbers are those of the public reports that these stories were made from. The provider checks
every request and refuses one that it would not take.
"""

from typing import Any

from app.agents import Agent
from app.tools import external_tool, tool
from tests.e2e.conftest import Stage
from tests.e2e.test_partial_answers import OVERLOADED, messages, retry, whole
from tests.support.resuming import last_request
from tests.support.service import running_service
from tests.support.sse_reader import TurnReader

NOTES: list[str] = []


@tool(effect="reads")
def lookup() -> str:
    """Look it up."""
    return "found"


@tool(effect="writes")
def save_note(content: str) -> str:
    """Save a note."""
    NOTES.append(content)
    return "saved"


@external_tool
def ext() -> None:
    """Somebody else does it."""


AGENT = Agent(id="clerk", instructions="", model="story", tools=[lookup, save_note, ext])


def calling(name: str, arguments: str = "{}", **more: object) -> dict[str, object]:
    return {"calls": [{"id": f"call_{name}", "name": name, "arguments": arguments}], **more}


async def test_scenario_002_a_broken_round_with_calls_is_not_glued_to_the_next_one(
    stage: Stage,
) -> None:
    broken = calling("lookup", text="Let me ", faults=[{"stream_error": OVERLOADED}])
    stage.provider.script("story", [broken])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        waiting = await service.send("c1", "look it up", agentId="clerk")
        stage.provider.script("story", [{"text": "done"}])
        done = (await service.resume(waiting["turnId"], retry(waiting))).json()
        events = TurnReader(service.client, waiting["turnId"])
        await events.read(until=lambda event: event["type"] == "TURN_COMPLETED")

    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "done")
    asked = last_request(stage.provider)
    assert [(m["role"], "tool_calls" in m) for m in asked[:2]] == [
        ("user", False),
        ("assistant", False),
    ]
    (stopped,) = (e["data"] for e in events.received if e["type"] == "MODEL_STOPPED")
    assert stopped["withheldTools"] == ["lookup"]
    await whole(stage, waiting["turnId"])


async def test_scenario_007_a_blank_answer_that_broke_is_in_no_history(stage: Stage) -> None:
    blank = {"text": " \n", "faults": [{"stream_error": OVERLOADED}]}
    stage.provider.script("story", [blank])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        waiting = await service.send("c1", "hi", agentId="clerk")
        stage.provider.script("story", [{"text": "hello"}, {"text": "again"}])
        first = (await service.resume(waiting["turnId"], retry(waiting))).json()
        second = await service.send("c1", "again", agentId="clerk")
        said = await messages(service)

    assert waiting["status"] == "WAITING_FOR_MODEL"
    assert [first["finalOutput"], second["finalOutput"]] == ["hello", "again"]
    assert [m["role"] for m in said] == ["user", "assistant", "user", "assistant"]


async def test_scenario_008_a_call_that_was_cancelled_in_its_arguments_is_gone(
    stage: Stage,
) -> None:
    NOTES.clear()
    arguments = '{"content": "' + "x" * 2_000 + '"}'
    hanging = calling("save_note", arguments, faults=[{"cut_at_byte": 1_200, "hang": True}])
    stage.provider.script("story", [hanging])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        turn = await service.send("c1", "save", agentId="clerk", wait=0)
        reader = TurnReader(service.client, turn["turnId"])
        await reader.read(until=lambda event: event["type"] == "MODEL_STARTED")
        await service.client.post(f"/turns/{turn['turnId']}/cancel")
        ended = await service.at_rest(turn["turnId"])
        stage.provider.script("story", [{}, {"text": "ok"}])
        done = await service.send("c1", "something else", agentId="clerk")

    assert (ended["status"], done["status"]) == ("CANCELLED", "COMPLETED")
    assert NOTES == []
    assert not any("tool_calls" in m for m in last_request(stage.provider))


async def test_scenario_010_arguments_that_are_no_json_are_an_error_for_the_model(
    stage: Stage,
) -> None:
    NOTES.clear()
    cut = calling("save_note", '{"content": "abc', stop="tool_calls")
    stage.provider.script("story", [cut, {"text": "ok"}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        done = await service.send("c1", "write it", agentId="clerk")
        said = await messages(service)

    assert (done["status"], NOTES) == ("COMPLETED", [])
    assert [m["role"] for m in said] == ["user", "assistant", "tool", "assistant"]
    assert said[2]["outcome"] == "error"


async def test_scenario_011_arguments_that_the_limit_cut_are_never_mended(stage: Stage) -> None:
    NOTES.clear()
    cut = calling("save_note", '{"content":"line 1\\nli', stop="length")
    stage.provider.script("story", [cut, {"text": "ok"}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        done = await service.send("c1", "write file", agentId="clerk")
        said = await messages(service)

    assert (done["status"], NOTES) == ("COMPLETED", [])
    assert "cut" in said[2]["content"]
    assert said[2]["outcome"] == "error"


async def test_scenario_094_an_error_behind_a_200_is_a_failure_and_its_text_no_answer(
    stage: Stage,
) -> None:
    broken = {"text": "Half an answer", "chunks": 2, "faults": [{"stream_error": OVERLOADED}]}
    stage.provider.script("story", [{**broken}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        waiting = await service.send("c1", "go", agentId="clerk")
        stage.provider.script("story", [{"text": "ok"}])
        done = (await service.resume(waiting["turnId"], retry(waiting))).json()

    assert (waiting["status"], waiting["failureType"]) == ("WAITING_FOR_MODEL", "OVERLOADED")
    assert waiting["counters"]["modelFailures"] == 1
    assert done["finalOutput"] == "ok"


async def test_scenario_014_reasoning_beside_a_call_goes_with_it_or_not_at_all(
    stage: Stage,
) -> None:
    stage.provider.script("story", [calling("ext", reasoning="hm"), {"text": "as you wish"}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        waiting = await service.send("c1", "go", agentId="clerk")
        done = await service.send("c1", "forget that", agentId="clerk")

    assert (waiting["status"], done["status"]) == ("WAITING_FOR_TOOL", "COMPLETED")
    asked: list[dict[str, Any]] = last_request(stage.provider)
    assert [m["role"] for m in asked] == ["user", "assistant", "tool", "user"]
    assert asked[1].get("reasoning_content") in {"hm", None}
