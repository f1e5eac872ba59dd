"""Failures of the model, over HTTP: what they are taken for, and what becomes of the turn."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.agents import Agent, RetryPolicy
from app.ports import ModelEvent, ModelRequest, ResolvedModel, TextDelta
from tests.e2e.conftest import Stage
from tests.support.oracles import records
from tests.support.service import Service, running_service

AGENT = Agent(id="clerk", instructions="", model="story")
HOUR = timedelta(hours=1)
STUBBORN = replace(AGENT, retry=RetryPolicy(max_retries=5, initial_delay=HOUR, max_delay=HOUR))
EXHAUSTED = "{'error': {'message': 'No credit is left.', 'code': 'insufficient_quota'}}"
WRAPPED_TWICE = f"Gateway error: upstream said: Error code: 429 - {EXHAUSTED}"


def gateway(message: str) -> dict[str, object]:
    """A gateway's general error, with the provider's own inside."""
    error = {"message": message, "type": "api_error", "code": "500"}
    return {"times": 9, "status": 500, "body": {"error": error}}


async def roles(service: Service, conversation: str = "c1") -> list[str]:
    page = await service.client.get(f"/conversations/{conversation}/messages")
    return [item["role"] for item in page.json()["items"]]


def said(stage: Stage) -> list[str]:
    """The roles of the last request."""
    body: Any = stage.provider.requests("story")[-1]["body"]
    return [message["role"] for message in body["messages"]]


async def test_case_21_a_failure_is_told_through_two_wrappings(stage: Stage) -> None:
    stage.provider.script("story", [{"text": "", "faults": [gateway(WRAPPED_TWICE)]}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")

    assert (turn["status"], turn["failureType"]) == ("WAITING_FOR_MODEL", "QUOTA_EXCEEDED")
    assert turn["suspension"]["modelFailure"]["errorCode"] == "insufficient_quota"


async def test_case_22_a_quota_inside_a_general_error_is_a_quota(stage: Stage) -> None:
    inner = {"message": "the upstream failed", "error": {"code": "insufficient_quota"}}
    fault = {"times": 9, "status": 502, "body": {"error": inner}}
    stage.provider.script("story", [{"text": "", "faults": [fault]}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")

    assert (turn["status"], turn["failureType"]) == ("WAITING_FOR_MODEL", "QUOTA_EXCEEDED")


async def test_case_23_a_wrapped_quota_is_not_tried_again_although_the_agent_retries(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{"text": "", "faults": [gateway(WRAPPED_TWICE)]}])
    async with running_service(stage.dsn, stage.settings, agents=[STUBBORN]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")

    assert (turn["status"], turn["counters"]["retries"]) == ("WAITING_FOR_MODEL", 0)
    assert len(stage.provider.requests("story")) == 1


class Faulty:
    """A model's adapter with a mistake in it."""

    def resolve(self, model: str | None) -> ResolvedModel:
        return ResolvedModel(client=self, model=model or "any", provider="a test")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        yield TextDelta(text="Half an ")
        raise KeyError(request.model)


async def test_case_24_a_fault_of_the_adapter_fails_the_turn_and_nothing_brings_it_back(
    stage: Stage,
) -> None:
    async with running_service(
        stage.dsn, stage.settings, agents=[STUBBORN], models=Faulty()
    ) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")
        failures = await service.client.get(f"/turns/{turn['turnId']}/failures")
        again = await service.resume(turn["turnId"], {"failureId": "any"})
        history = await roles(service)

    assert (turn["status"], turn["failureId"], turn["actions"]) == ("FAILED", None, [])
    assert failures.json()["items"] == []
    assert (again.status_code, again.json()["code"]) == (409, "turn_terminal")
    assert history == ["user", "assistant", "closing"], "half an answer, which is none"


async def test_case_25_a_model_that_says_nothing_in_time_is_unavailable_and_the_turn_waits(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{"text": "", "faults": [{"times": 9, "hang": True}]}])
    settings = stage.settings.model_copy(update={"model_first_byte_timeout_seconds": 0.2})
    async with running_service(stage.dsn, settings, agents=[AGENT]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")

    assert (turn["status"], turn["failureType"]) == ("WAITING_FOR_MODEL", "UNAVAILABLE")
    assert turn["suspension"]["modelFailure"]["exceptionType"] == "FirstByteTimeout"


NOTHING = {"text": ""}
BLANK = {"text": " \n"}
AN_ERROR = {
    "text": "",
    "faults": [{"times": 9, "stream_error": {"error": {"message": "down", "code": 503}}}],
}
NO_MESSAGE = {"text": "", "faults": [{"times": 9, "cut_at_byte": 0}]}
NO_JSON = {"text": "", "faults": [{"times": 9, "status": 200, "body": None}]}


@pytest.mark.parametrize("answer", [NOTHING, BLANK, AN_ERROR, NO_MESSAGE, NO_JSON])
async def test_case_26_an_answer_that_is_none_is_a_failure_and_nothing_is_appended(
    stage: Stage, answer: dict[str, object]
) -> None:
    stage.provider.script("story", [answer])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")
        history = await roles(service)

    assert (turn["status"], turn["failureType"]) == ("WAITING_FOR_MODEL", "UNAVAILABLE")
    assert turn["counters"]["modelSuccesses"] == 0
    assert history == ["user"]


async def test_case_27_half_an_answer_is_no_answer_and_the_retry_gives_it_whole(
    stage: Stage,
) -> None:
    text = "".join(f"{n:03} of many words. " for n in range(40))
    broken = {"text": text, "chunks": 80, "faults": [{"cut_at_byte": 6_000}]}
    stage.provider.script("story", [broken])
    async with running_service(stage.dsn, stage.settings, agents=[STUBBORN]) as service:
        waiting = await service.send("c1", "Go.", agentId="clerk")
        between = await roles(service)
        done = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        history = await roles(service)
        async with records(stage.dsn) as found:
            record = await found.of(waiting["turnId"])

    # Words were shown, so it is not tried again by itself, although the agent would.
    assert (waiting["status"], waiting["finalOutput"]) == ("WAITING_FOR_MODEL", None)
    shown = record.types[: record.types.index("MODEL_FAILED")]
    assert "MODEL_TEXT" in shown
    assert between == ["user", "assistant"], "a partial one"
    assert said(stage) == ["user", "assistant", "user"], "and it is told to begin again"
    assert (done.json()["status"], done.json()["finalOutput"]) == ("COMPLETED", text)
    assert history == ["user", "assistant", "notice", "assistant"]
