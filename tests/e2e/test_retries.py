"""Retries that the service makes by itself, over HTTP."""

from datetime import datetime, timedelta

from app.agents import Agent, Limits, RetryPolicy
from app.tools import tool
from tests.e2e.conftest import Stage
from tests.support.oracles import check_history, records
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.support.service import SignedIn, running_service

SOON = timedelta(milliseconds=30)
DOWN: dict[str, object] = {"status": 503}


def clerk(max_retries: int, delay: timedelta, limits: Limits | None = None) -> Agent:
    """Its failed calls are tried again so often, each after `delay`."""
    policy = RetryPolicy(
        max_retries=max_retries,
        initial_delay=delay,
        multiplier=1,
        max_delay=timedelta(days=1),
        jitter="none",
    )
    return Agent(
        id="clerk",
        instructions="",
        model="story",
        tools=[look_up],
        retry=policy,
        limits=limits or Limits(),
    )


@tool(effect="reads")
def look_up() -> str:
    """Look it up."""
    return "found"


async def until(service: SignedIn, turn_id: str, status: str) -> dict[str, object]:
    """The turn once it has this status."""

    async def has_it() -> dict[str, object] | None:
        turn = await service.turn(turn_id)
        return turn if turn["status"] == status else None

    return await eventually(has_it)


async def test_case_36_a_constant_failure_is_tried_again_as_often_as_allowed_and_then_waits(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{"text": "", "faults": [DOWN | {"times": 99}]}])
    async with running_service(stage.dsn, stage.settings, agents=[clerk(2, SOON)]) as service:
        sent = await service.send("c1", "Go.", wait=0, agentId="clerk")
        turn = await until(service, sent["turnId"], "WAITING_FOR_MODEL")
        failures = await service.client.get(f"/turns/{sent['turnId']}/failures")
        async with records(stage.dsn) as found:
            types = (await found.of(sent["turnId"])).types

    assert types.count("RETRY_SCHEDULED") == 2
    assert [item["failureId"] for item in failures.json()["items"]][-1] == turn["failureId"]
    assert len(failures.json()["items"]) == len(stage.provider.requests("story")) == 3
    counters = turn["counters"]
    assert isinstance(counters, dict)
    assert (counters["modelFailures"], counters["retries"]) == (3, 2)


async def test_case_39_a_success_gives_the_next_chain_of_failures_its_own_retries(
    stage: Stage,
) -> None:
    calls = [{"id": "A", "name": "look_up", "arguments": "{}"}]
    rounds: list[dict[str, object]] = [
        {"calls": calls, "faults": [DOWN]},
        {"text": "Done.", "faults": [DOWN]},
    ]
    stage.provider.script("story", rounds)
    async with running_service(stage.dsn, stage.settings, agents=[clerk(1, SOON)]) as service:
        sent = await service.send("c1", "Go.", wait=0, agentId="clerk")
        turn = await until(service, sent["turnId"], "COMPLETED")

    counters = turn["counters"]
    assert isinstance(counters, dict)
    assert (counters["retries"], counters["consecutiveRetries"]) == (2, 0)


async def test_case_40_a_message_gives_the_next_failure_its_own_retry_and_the_sum_stays(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{"text": "", "faults": [DOWN | {"times": 9}]}])
    agents = [clerk(1, timedelta(hours=1))]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        first = await service.send("c1", "Go.", agentId="clerk")
        second = await service.send("c1", "Go on, please.")

    assert first["status"] == second["status"] == "RETRY_SCHEDULED"
    assert second["turnId"] == first["turnId"]
    assert second["failureId"] != first["failureId"]
    assert (second["counters"]["retries"], second["counters"]["consecutiveRetries"]) == (2, 1)


async def test_case_43_a_retry_whose_turn_has_no_time_left_calls_nothing(stage: Stage) -> None:
    stage.provider.script("story", [{"text": "Too late.", "faults": [DOWN]}])
    agents = [clerk(1, timedelta(hours=1), Limits(max_duration=timedelta(hours=2)))]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        scheduled = await service.send("c1", "Go.", agentId="clerk")
        await query(stage.dsn, "UPDATE turns SET created_at = created_at - interval '2 hours'")
        ended = await service.resume(scheduled["turnId"], {"command": "CONTINUE"})

    assert scheduled["status"] == "RETRY_SCHEDULED"
    assert (ended.json()["status"], ended.json()["actions"]) == ("BUDGET_EXCEEDED", [])
    assert len(stage.provider.requests("story")) == 1


async def test_case_45_turns_that_fail_together_come_back_at_different_times(
    stage: Stage,
) -> None:
    hour = timedelta(hours=1)
    policy = RetryPolicy(max_retries=1, initial_delay=hour, max_delay=hour)
    agent = Agent(id="clerk", instructions="", model="story", retry=policy)
    stage.provider.script("story", [{"text": "", "faults": [DOWN | {"times": 99}]}])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        turns = [await service.send(f"c{n}", "Go.", agentId="clerk") for n in range(8)]

    delays = {
        datetime.fromisoformat(turn["retryAt"])
        - datetime.fromisoformat(turn["suspension"]["requestedAt"])
        for turn in turns
    }
    assert len(delays) == 8
    assert all(timedelta(0) <= delay <= hour for delay in delays)


async def test_case_46_a_scheduled_retry_that_is_cancelled_ends_whole_and_calls_no_model(
    stage: Stage,
) -> None:
    calls = [{"id": "A", "name": "look_up", "arguments": "{}"}]
    stage.provider.script("story", [{"calls": calls}, {"text": "", "faults": [DOWN]}])
    agents = [clerk(1, timedelta(hours=1))]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        scheduled = await service.send("c1", "Go.", agentId="clerk")
        answer = await service.client.post(f"/turns/{scheduled['turnId']}/cancel")
        async with records(stage.dsn) as found:
            record = await found.of(scheduled["turnId"])

    assert scheduled["status"] == "RETRY_SCHEDULED"
    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    assert len(stage.provider.requests("story")) == 2
    assert [message.role for message in record.transcript][-1] == "closing"
    check_history(record)


async def test_case_140_the_step_ends_then_the_turn_waits_then_the_retry_is_scheduled(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{"text": "Done.", "faults": [DOWN]}])
    async with running_service(stage.dsn, stage.settings, agents=[clerk(1, SOON)]) as service:
        sent = await service.send("c1", "Go.", wait=0, agentId="clerk")
        stream = await service.client.get(f"/turns/{sent['turnId']}/events")

    lines = stream.text.splitlines()
    types = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    failed = types.index("MODEL_FAILED")
    assert types[failed : failed + 5] == [
        "MODEL_FAILED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
        "RETRY_SCHEDULED",
        "TURN_RESUMED",
    ]
    assert (types[-1], types.count("TURN_COMPLETED")) == ("TURN_COMPLETED", 1)
