"""Waits that a provider states, and limits that no wait helps, over HTTP."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from app.agents import Agent, RetryPolicy
from tests.e2e.conftest import Stage
from tests.support.service import running_service

SECOND = timedelta(seconds=1)
CLERK = Agent(
    id="clerk",
    instructions="",
    model="story",
    retry=RetryPolicy(max_retries=3, initial_delay=SECOND, multiplier=1, jitter="none"),
)


def limited(**headers: str) -> list[dict[str, object]]:
    """A round whose calls meet a rate limit with these headers."""
    error = {"message": "Rate limit reached", "code": "rate_limit_exceeded"}
    fault = {"times": 9, "status": 429, "headers": headers, "body": {"error": error}}
    return [{"text": "", "faults": [fault]}]


def wait_of(turn: dict[str, Any]) -> timedelta:
    """From the failure to the retry, by the service's clock."""
    due, failed = turn["retryAt"], turn["suspension"]["modelFailure"]["occurredAt"]
    return datetime.fromisoformat(due) - datetime.fromisoformat(failed)


async def test_case_32_a_full_window_is_the_same_failure_again_with_a_new_id(stage: Stage) -> None:
    error = {"message": "prompt is too long: 9 tokens > 8 maximum"}
    fault = {"times": 9, "status": 400, "body": {"error": error}}
    stage.provider.script("story", [{"text": "", "faults": [fault]}])
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        first = await service.send("c1", "Go.", agentId="clerk")
        again = await service.resume(first["turnId"], {"failureId": first["failureId"]})

    second = again.json()
    assert first["status"] == second["status"] == "WAITING_FOR_MODEL"
    assert first["failureType"] == second["failureType"] == "TOKEN_LIMIT_EXCEEDED"
    assert first["failureId"] != second["failureId"]
    assert len(stage.provider.requests("story")) == 2


async def test_case_33_a_rate_limit_is_not_tried_again_before_the_wait_it_states(
    stage: Stage,
) -> None:
    stage.provider.script("story", limited(**{"retry-after": "20"}))
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")
        early = await service.resume(turn["turnId"], {"command": "RETRY"})

    assert (turn["status"], turn["failureType"]) == ("RETRY_SCHEDULED", "RATE_LIMITED")
    assert turn["retryAfterMillis"] == 20_000
    assert wait_of(turn) >= 20 * SECOND
    assert early.json()["code"] == "retry_not_due"
    assert len(stage.provider.requests("story")) == 1


async def test_case_34_a_wait_beyond_the_maximum_is_shown_and_not_sat_out(stage: Stage) -> None:
    stage.provider.script("story", limited(**{"retry-after": "7200"}))
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")

    assert (turn["status"], turn["retryAfterMillis"]) == ("WAITING_FOR_MODEL", 7_200_000)
    assert len(stage.provider.requests("story")) == 1


@pytest.mark.parametrize(
    "stated", ["Wed, 21 Oct 2015 07:28:00 GMT", "soon", "-5", "nan", "inf", "1e9", ""]
)
async def test_case_35_a_wait_in_the_past_or_without_sense_falls_back_to_the_back_off(
    stage: Stage, stated: str
) -> None:
    stage.provider.script("story", limited(**{"retry-after": stated}))
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")

    assert (turn["status"], turn["retryAfterMillis"]) == ("RETRY_SCHEDULED", None)
    assert SECOND <= wait_of(turn) < 2 * SECOND
