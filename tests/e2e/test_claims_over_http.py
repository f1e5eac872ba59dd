"""Claims, versions and clocks as callers meet them: who may go on with a turn, and with which."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self

import orjson
import pytest
from typing_extensions import override

from app.agents import RetryPolicy
from app.services.messages import post_message
from app.store import clock
from app.tools import WaitPolicy, external_tool
from tests.e2e.conftest import Stage
from tests.e2e.test_reported_endings import calling, draft
from tests.http.rig import assert_problem, rows
from tests.support.bench import CALLER
from tests.support.deaths import Doom, let_claims_run_out, living
from tests.support.deaths import working as alive
from tests.support.oracles import check_everything
from tests.support.orphans import claimed, working
from tests.support.polling import eventually
from tests.support.resuming import last_request
from tests.support.service import Service, running_service
from tests.support.sizes import size
from tests.support.story import MODEL, QUOTA, clerk

DONE: dict[str, object] = {"text": "Done."}
PAY = calling("A", "pay", '{"amount": 3}')
OF_THE_CLAIM = "SELECT claimed_by, claimed_until, claim_epoch, version FROM turns"


async def test_case_47_of_two_runners_that_resume_one_turn_one_goes_on_with_it(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [DONE | {"faults": [QUOTA | {"times": 1}]}])
    agents = [clerk(stage.ledger)]
    async with (
        running_service(stage.dsn, stage.settings, agents=agents) as one,
        running_service(stage.dsn, stage.settings, agents=agents) as two,
    ):
        for n in range(size(5, soak=100)):
            stage.provider.script(MODEL, [DONE | {"faults": [QUOTA]}])
            turn = await one.send(f"ses_{n}", "Go.", agentId="clerk")
            body: dict[str, object] = {"failureId": turn["failureId"]}
            both = await asyncio.gather(
                *(s.resume(turn["turnId"], body, wait=0) for s in (one, two))
            )
            ended = await one.at_rest(turn["turnId"])

            won, lost = sorted(both, key=lambda answer: answer.status_code)
            assert won.status_code == 202
            assert lost.status_code == 409
            assert lost.json()["code"] in {"turn_not_blocked", "turn_terminal", "version_conflict"}
            assert ended["status"] == "COMPLETED"
            assert len(stage.provider.requests(MODEL)) == 2

    await check_everything(stage.dsn, stage.ledger)


async def test_case_50_a_turn_that_a_worker_holds_is_resumed_by_nobody_else(
    service: Service, stage: Stage
) -> None:
    await service.send("c1", "Go.", agentId="clerk", wait=0)
    turn_id = (await claimed(service)).turn.identity.turn_id
    before = await rows(stage.dsn, OF_THE_CLAIM)

    commands: list[dict[str, object]] = [
        {"command": "RETRY_MODEL", "failureId": "f"},
        {"command": "RETRY"},
        {"command": "CONTINUE"},
        {"command": "RESUME"},
    ]
    answers = [await service.resume(turn_id, command, wait=0) for command in commands]
    resumed = await service.client.post("/conversations/c1/resume")
    started = await service.client.post(f"/turns/{turn_id}/run")

    for answer in answers:
        assert_problem(answer, 409, "turn_not_blocked")
    assert_problem(resumed, 409, "not_resumable")
    assert resumed.json()["reason"] == "running"
    assert started.status_code == 409, started.text
    assert await rows(stage.dsn, OF_THE_CLAIM) == before
    assert stage.provider.requests(MODEL) == []


# --- 53: a process whose own clock is wrong -------------------------------------------------------


class MinutesAhead(datetime):
    """The time of day of a machine whose clock is ten minutes fast."""

    off_by = timedelta(minutes=10)

    @classmethod
    @override
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + cls.off_by


class MinutesBehind(MinutesAhead):
    """And of one that is slow."""

    off_by = timedelta(minutes=-10)


@pytest.mark.parametrize("wrong", [MinutesAhead, MinutesBehind])
async def test_case_53_leases_ends_of_waits_and_retries_go_by_the_databases_clock(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, wrong: type[datetime]
) -> None:
    soon = timedelta(milliseconds=100)
    retry = RetryPolicy(max_retries=1, initial_delay=soon, max_delay=soon, jitter="none")
    down = {"status": 503, "times": 1}

    @external_tool(wait=WaitPolicy(timeout=soon, on_expiry="answer_expired"))
    def fetch() -> None:
        """Fetch it from outside."""

    monkeypatch.setattr(clock, "datetime", wrong)
    stage.provider.script(MODEL, [calling("A", "fetch") | {"faults": [down]}, DONE])
    agent = replace(clerk(stage.ledger), tools=(fetch,), retry=retry)
    began = datetime.now(UTC)
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as one:
        sent = await one.send("c1", "Go.", agentId="clerk", wait=0)

        async def is_over() -> dict[str, Any] | None:
            turn = await one.turn(sent["turnId"])
            return turn if turn["status"] == "COMPLETED" else None

        ended = await eventually(is_over)

    told = [datetime.fromisoformat(ended[name]) for name in ("createdAt", "updatedAt")]
    assert began - timedelta(minutes=1) < min(told) <= max(told) < began + timedelta(minutes=1)
    assert ended["counters"]["retries"] == 1
    (record,) = await check_everything(stage.dsn, stage.ledger)
    assert [result.outcome for result in record.results.values()] == ["expired"]


# --- 56: what a newer version has stored ----------------------------------------------------------


NEWER: Mapping[str, object] = {
    "a state": {"state": {"kind": "of a newer version"}},
    "a field": {"of_a_newer_version": 7},
    "a field deeper down": {"counters": {"of_a_newer_version": 7}},
}


@pytest.mark.parametrize("change", NEWER.values(), ids=NEWER.keys())
async def test_case_56_a_turn_of_a_newer_version_is_refused_clearly_and_left_as_it_is(
    stage: Stage, change: Mapping[str, Mapping[str, object]]
) -> None:
    stage.provider.script(MODEL, [DONE | {"faults": [QUOTA]}, DONE])
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        turn = await service.send("c1", "Go.", agentId="clerk")
        await service.send("c2", "Go.", agentId="clerk")
        (stored,) = await rows(
            stage.dsn, "SELECT body FROM turns WHERE turn_id = $1", turn["turnId"]
        )
        body = orjson.loads(stored["body"])
        for name, value in change.items():
            body[name] = body[name] | value if isinstance(value, dict) else value
        await rows(
            stage.dsn,
            "UPDATE turns SET body = $1 WHERE turn_id = $2",
            orjson.dumps(body).decode(),
            turn["turnId"],
        )
        before = await rows(stage.dsn, "SELECT * FROM turns ORDER BY created_at")

        path = f"/turns/{turn['turnId']}"
        refused = [
            await service.client.get(path),
            await service.resume(turn["turnId"], {"failureId": turn["failureId"]}, wait=0),
            await service.client.post(f"{path}/cancel"),
            await service.client.post("/conversations/c1/messages", json={"content": "And?"}),
            await service.client.get("/conversations/c1"),
        ]
        lists = {
            path: (await service.client.get(path)).json()["items"]
            for path in ("/turns", "/conversations", "/waits")
        }

    for answer in refused:
        assert_problem(answer, 503, "turn_not_readable")
        assert answer.headers["Retry-After"].isdigit()
    assert [each["conversationId"] for each in lists["/turns"]] == ["c2"]
    assert [each["conversationId"] for each in lists["/conversations"]] == ["c2"]
    assert lists["/waits"] == []
    assert await rows(stage.dsn, "SELECT * FROM turns ORDER BY created_at") == before


# --- 67 and 68: a death between two steps ---------------------------------------------------------


async def dead_at(stage: Stage, point: str, *, passage: int = 1) -> str:
    """A turn whose process died there; its id."""
    doom = Doom([(point, passage)])
    agents = [clerk(stage.ledger)]
    async with living(stage.settings, stage.dsn, agents, doom) as runtime, alive(runtime):
        posted = await post_message(runtime.services, CALLER, draft("c1"))
        await doom.died.wait()
    await let_claims_run_out(stage.dsn)
    return posted.stored.turn.identity.turn_id


async def test_case_67_a_death_between_a_result_and_the_next_call_of_the_model_costs_nothing(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [PAY, DONE])
    turn_id = await dead_at(stage, "commit.results.after")
    asked_before = len(stage.provider.requests(MODEL))

    async with working(service):
        ended = await service.at_rest(turn_id)

    assert asked_before == 1
    assert (ended["status"], ended["finalOutput"]) == ("COMPLETED", "Done.")
    assert [each["role"] for each in last_request(stage.provider)] == ["user", "assistant", "tool"]
    assert last_request(stage.provider)[-1]["content"] == "paid 3"
    assert stage.ledger.tools() == ["pay"]


async def test_case_68_a_final_answer_is_never_stored_without_the_turns_end(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [DONE])
    turn_id = await dead_at(stage, "commit.answer.after")

    at_once = await service.turn(turn_id)
    async with working(service):
        ended = await service.at_rest(turn_id)

    assert at_once == ended
    assert (ended["status"], ended["finalOutput"]) == ("COMPLETED", "Done.")
    assert len(stage.provider.requests(MODEL)) == 1


async def test_case_68_a_final_answer_that_was_not_stored_is_asked_for_again_and_there_once(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [DONE])
    turn_id = await dead_at(stage, "commit.answer.before")

    async with working(service):
        ended = await service.at_rest(turn_id)

    said = (await service.client.get("/conversations/c1/messages")).json()["items"]
    assert ended["status"] == "COMPLETED"
    assert [each["role"] for each in said if not each.get("partial")] == ["user", "assistant"]
    assert len(stage.provider.requests(MODEL)) == 2
