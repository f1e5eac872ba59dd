"""What was reported of order, versions and clocks elsewhere: the wrong row, definition or time.

The numbers are those of the public reports that these stories were made from.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.agents import Agent, RetryPolicy
from app.entrypoints.wiring import Runtime
from app.ports import Clock
from tests.e2e.conftest import Stage
from tests.e2e.test_reported_endings import calling, sending
from tests.http.rig import assert_problem
from tests.support.deaths import Fate, Fault, lives
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.support.service import Service, running_service
from tests.support.story import MODEL, QUOTA, clerk

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
DONE: dict[str, object] = {"text": "Done."}


def standing_still() -> datetime:
    """A clock that has stopped."""
    return NOON


# --- 019 and 020: equal times ---------------------------------------------------------------------


async def test_scenario_019_messages_of_one_instant_are_read_in_the_order_they_were_said(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [calling("A", "look_up", '{"what": "a"}'), DONE])
    fate = Fate(Fault.ANSWER_LOST, at=frozenset())
    agents = [clerk(stage.ledger)]
    await lives(stage.settings, stage.dsn, agents, fate, sending("ses_1"), standing_still)
    await query(stage.dsn, "UPDATE messages SET created_at = '2026-08-01T12:00:00Z'")
    await query(stage.dsn, "VACUUM FULL messages")
    async with (
        running_service(stage.dsn, stage.settings, agents=agents) as one,
        running_service(stage.dsn, stage.settings, agents=agents) as two,
    ):
        read = [await roles(service, limit=100) for service in (one, two) for _ in range(50)]
        paged = [await roles(service, limit=1) for service in (one, two)]

    for order in (*read, *paged):
        assert order == ["user", "assistant", "tool", "assistant"]


async def roles(service: Service, *, limit: int) -> list[str]:
    """Of all messages, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
        answer = await service.client.get("/conversations/ses_1/messages", params=params)
        found += [item["role"] for item in answer.json()["items"]]
        cursor = answer.json()["nextCursor"]
        if cursor is None:
            return found


@pytest.mark.parametrize("tool", ["book", "pay"])
async def test_scenario_020_after_any_death_the_newest_state_is_gone_on_with(
    stage: Stage, tool: str
) -> None:
    arguments = {"book": '{"what": "a"}', "pay": '{"amount": 1}'}[tool]
    rounds = [calling(f"c{n}", tool, arguments) for n in range(5)]
    stage.provider.script(MODEL, [*rounds, DONE])
    agents, n, fate = [clerk(stage.ledger)], 0, Fate(Fault.DEATH_AFTER_COMMIT, at=frozenset())
    while fate.struck >= fate.at:
        n += 1
        fate = Fate(Fault.DEATH_AFTER_COMMIT, at=frozenset({n}))
        client = sending(f"ses_{n}")
        ended = await lives(stage.settings, stage.dsn, agents, fate, client, standing_still)
        effects = stage.ledger.effects(ended.turn.identity.turn_id)
        # A payment that was begun and not seen to end is reported, and not made again.
        assert len({effect.call_id for effect in effects}) >= (5 if tool == "book" else 4)
        assert ended.turn.status == "COMPLETED"

    assert n > 12  # the message, a begin, an answer and a result for each of five calls, the end
    await check_everything(stage.dsn, stage.ledger)


# --- 034 and 091: clocks and timers ---------------------------------------------------------------


@asynccontextmanager
async def worker_of(runtime: Runtime, clock: Clock) -> AsyncGenerator[None]:
    """A worker with a clock of its own."""
    writer = replace(runtime.services.writer, clock=clock)
    driver = replace(runtime.worker.driver, writer=writer)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(replace(runtime.worker, driver=driver).run(stop))
        try:
            yield
        finally:
            stop.set()


def off_by(clock: Clock, seconds: int) -> Clock:
    return lambda: clock() + timedelta(seconds=seconds)


async def test_scenario_034_workers_whose_clocks_are_minutes_apart_share_the_work_exactly(
    stage: Stage,
) -> None:
    rounds = [calling("A", "look_up_slowly", '{"what": "a"}'), calling("B", "pay", '{"amount": 1}')]
    stage.provider.script(MODEL, [*rounds, DONE])
    agents = [clerk(stage.ledger)]
    async with running_service(
        stage.dsn, stage.settings, agents=agents, with_worker=False
    ) as service:
        runtime = service.runtime
        clock = runtime.services.clock
        async with (
            worker_of(runtime, off_by(clock, 120)),
            worker_of(replace(runtime, worker=another(runtime)), off_by(clock, -120)),
        ):
            sent = [
                await service.send(f"ses_{n}", "Pay.", wait=0, agentId="clerk") for n in range(20)
            ]
            stage.ledger.open_gate()
            ended = [await service.at_rest(turn["turnId"]) for turn in sent]

    assert {turn["status"] for turn in ended} == {"COMPLETED"}
    assert {turn["counters"]["modelAttempts"] for turn in ended} == {3}
    assert {effect.attempt for effect in stage.ledger.effects()} == {1}
    assert len(stage.ledger.effects()) == 40
    await check_everything(stage.dsn, stage.ledger)


def another(runtime: Runtime) -> Any:  # noqa: ANN401 - a worker
    return replace(runtime.worker, name="another")


async def test_scenario_091_a_wait_that_the_provider_asked_for_is_kept_over_a_restart(
    stage: Stage,
) -> None:
    limited = {"times": 9, "status": 429, "headers": {"retry-after": "120"}, "body": {}}
    stage.provider.script(MODEL, [DONE | {"faults": [limited]}])
    soon = timedelta(milliseconds=1)
    retry = RetryPolicy(max_retries=3, initial_delay=soon, max_delay=soon)
    agents = [replace(clerk(stage.ledger), retry=retry)]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        scheduled = await service.send("ses_1", "Go.", agentId="clerk")
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        still = await service.turn(scheduled["turnId"])
        early = await service.resume(scheduled["turnId"], {"command": "RETRY"}, wait=0)
        asked_too_early = stage.provider.requests(MODEL)[1:]
        stage.provider.script(MODEL, [DONE])
        done = await service.resume(scheduled["turnId"], {"command": "CONTINUE"})

    wait = datetime.fromisoformat(scheduled["retryAt"]) - datetime.fromisoformat(
        scheduled["suspension"]["requestedAt"]
    )
    assert (scheduled["status"], still["status"]) == ("RETRY_SCHEDULED", "RETRY_SCHEDULED")
    assert (still["version"], still["retryAt"]) == (scheduled["version"], scheduled["retryAt"])
    assert wait >= timedelta(seconds=120)
    assert_problem(early, 409, "retry_not_due")
    assert asked_too_early == []
    assert done.json()["status"] == "COMPLETED"


async def test_scenario_091_an_exhausted_quota_is_no_short_limit(stage: Stage) -> None:
    stage.provider.script(MODEL, [DONE | {"faults": [QUOTA | {"times": 9}]}])
    agents = [replace(clerk(stage.ledger), retry=RetryPolicy(max_retries=3))]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        waiting = await service.send("ses_1", "Go.", agentId="clerk")

    assert (waiting["status"], waiting["failureType"]) == ("WAITING_FOR_MODEL", "QUOTA_EXCEEDED")
    assert (waiting["counters"]["retries"], len(stage.provider.requests(MODEL))) == (0, 1)


# --- 064: a version that is gone ------------------------------------------------------------------


def teller(version: str) -> Agent:
    return Agent(id="teller", version=version, instructions=f"You are {version}.", model=MODEL)


async def test_scenario_064_a_turn_whose_version_is_gone_is_read_and_ended_and_never_run_by_another(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [DONE | {"faults": [QUOTA]}])
    async with running_service(stage.dsn, stage.settings, agents=[teller("3")]) as service:
        waiting = await service.send("ses_1", "Go.", agentId="teller")
    async with running_service(stage.dsn, stage.settings, agents=[teller("4")]) as service:
        read = await service.turn(waiting["turnId"])
        said = await service.client.get("/conversations/ses_1/messages")
        failures = await service.client.get(f"/turns/{waiting['turnId']}/failures")
        body: dict[str, object] = {"failureId": waiting["failureId"]}
        refused = await service.resume(waiting["turnId"], body, wait=0)
        asked = len(stage.provider.requests(MODEL))
        cancelled = await service.client.post(f"/turns/{waiting['turnId']}/cancel")

    assert (read["status"], read["agentVersion"]) == ("WAITING_FOR_MODEL", "3")
    assert [item["role"] for item in said.json()["items"]] == ["user"]
    assert len(failures.json()["items"]) == 1
    assert_problem(refused, 409, "agent_version_unavailable")
    assert asked == 1
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "CANCELLED")


async def test_scenario_064_a_turn_is_gone_on_with_by_its_own_version_beside_a_newer_one(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [DONE | {"faults": [QUOTA]}])
    async with running_service(stage.dsn, stage.settings, agents=[teller("3")]) as service:
        waiting = await service.send("ses_1", "Go.", agentId="teller")
    both = [teller("3"), teller("4")]
    async with running_service(stage.dsn, stage.settings, agents=both) as service:
        done = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        new = await service.send("ses_2", "Go.", agentId="teller")
        await eventually(lambda: is_asked_twice(stage))

    instructions: list[Any] = [request["body"] for request in stage.provider.requests(MODEL)]
    assert (done.json()["status"], done.json()["agentVersion"]) == ("COMPLETED", "3")
    assert new["agentVersion"] == "4"
    assert [body["messages"][0]["content"] for body in instructions] == [
        "You are 3.",
        "You are 3.",
        "You are 4.",
    ]


async def is_asked_twice(stage: Stage) -> bool:
    return len(stage.provider.requests(MODEL)) >= 2
