"""Structured output over HTTP: the value of the final answer, one repair, then a clear failure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import orjson
from pydantic import BaseModel, Field

from app.agents import Agent, Limits
from tests.e2e.conftest import Stage
from tests.support.oracles import check_events, check_fold, check_history, records
from tests.support.service import Service, running_service
from tests.support.story import QUOTA


class Stock(BaseModel):
    """How much of a product is left."""

    sku: str
    units: int = Field(ge=0)
    note: str | None = None


AGENT = Agent(id="counter", instructions="Count.", model="story", output=Stock)
FITS = '```json\n{"sku": "TP-4410", "units": 231}\n```'
VALUE = {"sku": "TP-4410", "units": 231, "note": None}
MISFITS = "There are about 231."


async def events_of(service: Service, turn_id: str) -> list[dict[str, Any]]:
    """The turn's events, from the first to the last."""
    stream = await service.client.get(f"/turns/{turn_id}/events")
    lines = [line for line in stream.text.splitlines() if line.startswith("data: ")]
    return [orjson.loads(line.removeprefix("data: ")) for line in lines]


async def roles(service: Service, conversation: str) -> list[str]:
    page = await service.client.get(f"/conversations/{conversation}/messages")
    return [item["role"] for item in page.json()["items"]]


def told(stage: Stage) -> Sequence[dict[str, Any]]:
    """The messages of the last request."""
    body = cast("dict[str, Any]", stage.provider.requests("story")[-1]["body"])
    return cast("Sequence[dict[str, Any]]", body["messages"])


async def test_the_value_comes_in_the_turn_and_as_an_event_while_the_text_streams_as_ever(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{"text": FITS, "chunks": 5}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        turn = await service.send("c1", "How many?", agentId="counter")
        events = await events_of(service, turn["turnId"])
        listed = await service.client.get("/turns", params={"conversationId": "c1"})
        agents = await service.client.get("/agents")

    assert (turn["status"], turn["stopReason"]) == ("COMPLETED", "END_TURN")
    assert turn["output"] == listed.json()["items"][0]["output"] == VALUE
    assert turn["finalOutput"] == FITS
    assert "".join(e["data"]["text"] for e in events if e["type"] == "MODEL_TEXT") == FITS
    ready = next(event for event in events if event["type"] == "OUTPUT_READY")
    assert ready["data"] == {"output": VALUE}
    assert [event["type"] for event in events[-3:]] == [
        "OUTPUT_READY",
        "STEP_COMPLETED",
        "TURN_COMPLETED",
    ]
    schema = agents.json()["items"][-1]["outputSchema"]
    assert list(schema["properties"]) == ["sku", "units", "note"]
    system = told(stage)[0]["content"]
    assert system.startswith("Count.\n\n")
    assert orjson.dumps(schema).decode() in system


async def test_an_answer_that_does_not_fit_is_repaired_once(stage: Stage) -> None:
    stage.provider.script("story", [{"text": MISFITS}, {"text": '{"sku":"TP-4410","units":231}'}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        turn = await service.send("c1", "How many?", agentId="counter")
        said = await roles(service, "c1")
        events = await events_of(service, turn["turnId"])

    assert (turn["status"], turn["output"]) == ("COMPLETED", VALUE)
    assert said == ["user", "assistant", "notice", "assistant"]
    assert [message["role"] for message in told(stage)[1:]] == ["user", "assistant", "user"]
    assert "It is not JSON" in told(stage)[-1]["content"]
    added = [e["data"]["role"] for e in events if e["type"] == "MESSAGE_ADDED"]
    assert added == ["user", "notice"]
    async with records(stage.dsn) as found:
        record = await found.of(turn["turnId"])
    check_fold(record)
    check_events(record.journal, record.turn)
    check_history(record)


async def test_a_second_answer_that_does_not_fit_fails_with_a_sentence_for_people(
    stage: Stage,
) -> None:
    closing = {"text": "said by the service itself"}
    rounds = [{"text": MISFITS}, {"text": '{"units": -1}'}, closing, {"text": FITS}]
    stage.provider.script("story", rounds)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        turn = await service.send("c1", "How many?", agentId="counter")
        chinese = await service.client.get(
            f"/turns/{turn['turnId']}", headers={"Accept-Language": "zh-CN"}
        )
        events = await events_of(service, turn["turnId"])
        next_turn = await service.send("c1", "Try again.")

    assert (turn["status"], turn["output"], turn["actions"]) == ("FAILED", None, [])
    assert turn["message"].startswith("The answer did not have the form that this agent promises")
    assert chinese.json()["message"].startswith("回答不符合该智能体约定的格式")
    assert events[-1]["data"]["reason"] == "output_invalid"
    assert "units" in events[-1]["data"]["detail"]
    assert (next_turn["status"], next_turn["output"]) == ("COMPLETED", VALUE)


async def test_a_failure_of_the_model_in_the_repair_waits_and_a_message_is_fine(
    stage: Stage,
) -> None:
    broken = {"text": FITS, "faults": [QUOTA | {"times": 2}]}
    stage.provider.script("story", [{"text": MISFITS}, broken])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        waiting = await service.send("c1", "How many?", agentId="counter")
        again = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        done = await service.send("c1", "Of TP-4410, I mean.")
        said = await roles(service, "c1")

    assert waiting["status"] == again.json()["status"] == "WAITING_FOR_MODEL"
    assert (done["turnId"], done["output"]) == (waiting["turnId"], VALUE)
    assert said == ["user", "assistant", "notice", "user", "assistant"]


async def test_the_repair_is_a_model_call_like_any_other_to_the_limits(stage: Stage) -> None:
    agent = replace(AGENT, limits=Limits(max_iterations=1, is_blocking=True))
    stage.provider.script("story", [{"text": MISFITS}, {"text": FITS}])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        paused = await service.send("c1", "How many?", agentId="counter")
        changes = {"limits": {"maxIterations": 2}}
        done = await service.resume(paused["turnId"], {"command": "RESUME", "changes": changes})

    assert (paused["status"], paused["pause"]["limit"]) == ("PAUSED", "max_iterations")
    assert (done.json()["status"], done.json()["output"]) == ("COMPLETED", VALUE)


async def test_what_a_model_refuses_or_cannot_finish_is_no_value_and_no_failure(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{"text": '{"sku": "TP', "stop": "length"}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        cut = await service.send("c1", "How many?", agentId="counter")

    assert (cut["status"], cut["stopReason"], cut["output"]) == ("COMPLETED", "MAX_OUTPUT", None)
