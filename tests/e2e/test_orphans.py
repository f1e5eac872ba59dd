"""Turns whose worker has died, and what people may do to them meanwhile; over real HTTP."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from app.turn.events import StepRecovered
from tests.e2e.conftest import Stage
from tests.http.rig import assert_problem
from tests.support.oracles import check_everything
from tests.support.orphans import claimed, dies_once, dies_with, working
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.support.resuming import last_request, point_of, resume
from tests.support.service import Service, running_service
from tests.support.sizes import size
from tests.support.story import MODEL, clerk

SLOW_PAYMENT: dict[str, Any] = {
    "calls": [
        {"id": "A", "name": "pay_slowly", "arguments": '{"amount": 3}'},
        {"id": "B", "name": "pay", "arguments": '{"amount": 4}'},
    ],
}
DONE = {"text": "Done."}


@pytest.fixture
async def service(stage: Stage) -> AsyncGenerator[Service]:
    """Without a worker; `clerk` goes on after a crash, `careful` leaves that to people."""
    one = clerk(stage.ledger, parallel_tools=1)
    agents = [one, replace(one, id="careful", on_crash="pause")]
    async with running_service(
        stage.dsn, stage.settings, agents=agents, with_worker=False
    ) as running:
        yield running
    await check_everything(stage.dsn, stage.ledger)


async def orphan(
    service: Service, stage: Stage, *, agent: str = "clerk", conversation: str = "c1"
) -> str:
    """A turn whose worker died with a payment under way; another has not begun."""
    before = len(stage.ledger.effects())
    stage.provider.script(MODEL, [SLOW_PAYMENT, DONE, DONE])
    await service.send(conversation, "Pay.", agentId=agent, wait=0)
    return await dies_with(service, stage.dsn, lambda: len(stage.ledger.effects()) > before)


async def outcomes(service: Service, turn_id: str) -> dict[str, str]:
    answer = await service.client.get(f"/turns/{turn_id}/interruptions")
    return {each["callId"]: each["outcome"] for each in answer.json()["items"]}


async def post(service: Service, text: str, **more: object) -> Any:  # noqa: ANN401 - an answer
    return await service.client.post(
        "/conversations/c1/messages",
        json={"content": text, **more},
        headers={"Prefer": "wait=0"},
    )


# --- A message, T10a -----------------------------------------------------------------------------


async def test_a_message_to_an_orphan_answers_its_calls_runs_none_and_goes_on(
    service: Service, stage: Stage
) -> None:
    turn_id = await orphan(service, stage)

    answer = await post(service, "Stop, what happened?")

    assert answer.status_code == 202, answer.text
    turn = answer.json()
    assert (turn["turnId"], turn["status"], turn["cursor"]) == (turn_id, "RUNNING", "INVOKE_MODEL")
    assert await outcomes(service, turn_id) == {"A": "unknown", "B": "not_started"}
    async with working(service):
        assert (await service.at_rest(turn_id))["status"] == "COMPLETED"
    assert stage.ledger.tools() == ["pay_slowly"]
    roles = [message["role"] for message in last_request(stage.provider)]
    assert roles == ["user", "assistant", "tool", "tool", "user"]


@pytest.mark.parametrize("agent", ["clerk", "careful"])
async def test_a_message_behind_a_death_in_mid_answer_leaves_what_was_read_of_it(
    service: Service, stage: Stage, agent: str
) -> None:
    """`careful` is paused by its next worker before the message comes."""
    told, cut = "Once upon a time. " * 400, {"times": 1, "cut_at_byte": 7_000, "hang": True}
    script: list[dict[str, Any]] = [{"text": told, "chunks": 3, "faults": [cut]}, DONE]
    stage.provider.script(MODEL, script)
    await service.send("c1", "Tell me a tale.", agentId=agent, wait=0)
    turn_id = await dies_once(service, stage.dsn, partial(_has_text, stage))
    if agent == "careful":
        async with working(service):
            assert (await service.at_rest(turn_id))["status"] == "PAUSED"

    answer = await post(service, "Never mind.")

    assert answer.status_code == 202, answer.text
    async with working(service):
        assert (await service.at_rest(turn_id))["finalOutput"] == "Done."
    shown = (await service.client.get("/conversations/c1/messages")).json()["items"]
    roles = [(each["role"], each.get("stopReason")) for each in shown]
    assert roles == [
        ("user", None),
        ("assistant", "INTERRUPTED"),
        ("user", None),
        ("assistant", "END_TURN"),
    ]
    assert told.startswith(shown[1]["content"])


async def test_with_recovery_first_the_turn_ends_by_its_rules_and_the_message_follows(
    service: Service, stage: Stage
) -> None:
    turn_id = await orphan(service, stage)

    answer = await post(service, "And then?", recoverFirst=True)

    assert answer.status_code == 202, answer.text
    assert [each["mode"] for each in answer.json()["queue"]] == ["queue"]
    assert await outcomes(service, turn_id) == {}
    async with working(service):
        await service.at_rest(turn_id)
        newest = (await service.client.get("/conversations/c1")).json()
        assert newest["activeTurn"] is None or newest["activeTurn"]["turnId"] != turn_id
    assert await outcomes(service, turn_id) == {"A": "unknown"}
    assert stage.ledger.tools(turn_id) == ["pay", "pay_slowly"]


async def test_a_dry_run_says_what_a_message_would_do_to_an_orphan(
    service: Service, stage: Stage
) -> None:
    await orphan(service, stage)

    foreseen = await service.client.post(
        "/conversations/c1/messages?dryRun=true", json={"content": "Stop."}
    )

    assert foreseen.json()["effect"] == "REPLAN"
    assert [each["outcome"] for each in foreseen.json()["closes"]] == ["unknown", "not_started"]
    assert (await point_of(service, "c1"))["kind"] == "RECOVER_TOOLS"


async def test_a_turn_that_has_its_worker_or_waits_for_its_first_one_takes_no_message(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [DONE])
    await service.send("c1", "Go.", agentId="clerk", wait=0)
    turn = (await service.client.get("/conversations/c1")).json()["activeTurn"]
    paused = await service.client.post(f"/turns/{turn['turnId']}/pause")
    assert paused.json()["status"] == "PAUSED"
    await service.resume(turn["turnId"], {"command": "RESUME"}, wait=0)

    unclaimed = await post(service, "And?")
    await claimed(service)
    held = await post(service, "And?", recoverFirst=True)

    assert_problem(unclaimed, 409, "conversation_busy")
    assert_problem(held, 409, "conversation_busy")


async def test_a_message_and_a_worker_at_the_same_moment_make_one_story(
    service: Service, stage: Stage
) -> None:
    """Whoever is faster: each call has one result, no payment is made twice."""
    for n in range(size(10, soak=200)):
        conversation = f"race-{n}"
        turn_id = await orphan(service, stage, conversation=conversation)
        said = service.client.post(
            f"/conversations/{conversation}/messages",
            json={"content": "Stop.", "messageId": f"stop-{n}"},
            headers={"Prefer": "wait=0"},
        )
        stage.ledger.open_gate()
        async with working(service):
            answer = await said
            await service.at_rest(turn_id)
        stage.ledger.shut_gate()

        assert answer.status_code in {202, 409}, answer.text
        payments = stage.ledger.tools(turn_id)
        assert payments in (["pay_slowly"], ["pay", "pay_slowly"])
        spoken = (await service.client.get(f"/conversations/{conversation}/messages")).json()
        users = [m["messageId"] for m in spoken["items"] if m["role"] == "user"]
        assert (f"stop-{n}" in users) == (answer.status_code == 202)


# --- A cancellation, a resume --------------------------------------------------------------------


async def test_scenario_055_an_orphan_is_cancelled_at_once_without_any_worker(
    service: Service, stage: Stage
) -> None:
    turn_id = await orphan(service, stage)

    answer = await service.client.post(f"/turns/{turn_id}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    assert answer.json()["stoppedBy"] == "cancel"
    assert await outcomes(service, turn_id) == {"A": "unknown", "B": "cancelled"}


async def test_an_agent_whose_crashes_people_look_at_is_paused_and_resumed_by_its_rules(
    service: Service, stage: Stage
) -> None:
    turn_id = await orphan(service, stage, agent="careful")

    async with working(service):
        paused = await service.at_rest(turn_id)
        inbox = (await service.client.get("/waits")).json()["items"]
        point = await point_of(service, "c1")
        resumed = await service.resume(turn_id, {"command": "RESUME"})

    assert (paused["status"], paused["pause"]["cause"]) == ("PAUSED", "crash")
    assert paused["stoppedBy"] == "crash"
    assert paused["message"].startswith("The process that ran the turn was lost")
    assert [each["turnId"] for each in inbox] == [turn_id]
    assert {c["callId"]: c["rule"] for c in point["unansweredToolCalls"]} == {
        "A": "report",
        "B": "run",
    }
    assert resumed.json()["status"] == "COMPLETED"
    assert await outcomes(service, turn_id) == {"A": "unknown"}
    assert stage.ledger.tools() == ["pay", "pay_slowly"]


async def test_a_model_call_that_was_lost_is_made_again_after_the_pause_and_counted_once(
    service: Service, stage: Stage
) -> None:
    hangs = {"text": "At last.", "faults": [{"times": 1, "hang": True}]}
    stage.provider.script(MODEL, [hangs])
    await service.send("c1", "Go.", agentId="careful", wait=0)
    turn_id = await dies_with(service, stage.dsn, lambda: bool(stage.provider.requests(MODEL)))

    async with working(service):
        paused = await service.at_rest(turn_id)
        resumed = await service.resume(turn_id, {"command": "RESUME"})

    assert (paused["status"], paused["cursor"]) == ("PAUSED", "INVOKE_MODEL")
    assert (resumed.json()["status"], resumed.json()["finalOutput"]) == ("COMPLETED", "At last.")
    assert resumed.json()["counters"]["modelAttempts"] == 2


async def test_a_resume_that_comes_before_any_worker_is_the_decision_it_asks_for(
    service: Service, stage: Stage
) -> None:
    turn_id = await orphan(service, stage, agent="careful")

    answer = await resume(service, "c1", Prefer="wait=0")
    assert (answer.status_code, answer.json()["status"]) == (202, "RUNNING")
    async with working(service):
        assert (await service.at_rest(turn_id))["status"] == "COMPLETED"

    assert await outcomes(service, turn_id) == {"A": "unknown"}


# --- Workers that die of a turn ------------------------------------------------------------------


async def killed(service: Service, stage: Stage, *, times: int) -> str:
    """A turn whose only tool its workers do not outlive, so many times; its id."""
    stage.provider.script(MODEL, [{"calls": [SLOW_READ]}, DONE])
    turn_id = (await service.send("c1", "Go.", agentId="clerk", wait=0))["turnId"]
    for died in range(times):
        await dies_with(service, stage.dsn, partial(_has_effects, stage, died + 1))
        await query(stage.dsn, "UPDATE turns SET claimed_until = claimed_until - interval '1 hour'")
    return str(turn_id)


SLOW_READ = {"id": "A", "name": "look_up_slowly", "arguments": '{"what": "a"}'}


async def test_a_turn_that_three_workers_died_of_is_paused_and_goes_on_when_resumed(
    service: Service, stage: Stage
) -> None:
    turn_id = await killed(service, stage, times=3)

    async with working(service):
        paused = await service.at_rest(turn_id)
        stage.ledger.open_gate()
        resumed = await service.resume(turn_id, {"command": "RESUME"})

    assert (paused["pause"]["cause"], paused["stoppedBy"]) == ("crash_loop", "crash_loop")
    assert "three times" in paused["message"]
    assert {action["command"] for action in paused["actions"]} >= {"RESUME", "CANCEL"}
    assert len(stage.ledger.effects()) == 4, "three that died of it, and the one that was let"
    assert resumed.json()["status"] == "COMPLETED"


async def test_a_turn_in_a_loop_of_crashes_is_cancelled_without_a_worker(
    service: Service, stage: Stage
) -> None:
    turn_id = await killed(service, stage, times=2)

    answer = await service.client.post(f"/turns/{turn_id}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")


async def test_a_worker_that_stops_in_order_is_told_apart_from_one_that_dies(
    service: Service, stage: Stage
) -> None:
    hangs = {"text": "Never.", "faults": [{"times": 1, "hang": True}]}
    causes: list[str | None] = []
    for conversation in ("c1", "c2"):
        stage.provider.script(MODEL, [hangs])
        turn_id = (await service.send(conversation, "Go.", agentId="clerk", wait=0))["turnId"]
        if conversation == "c1":
            async with working(service):
                await eventually(lambda: _is_asked(stage))
        else:
            await dies_with(service, stage.dsn, lambda: bool(stage.provider.requests(MODEL)))
        async with working(service):
            await service.at_rest(turn_id)
        rows = await service.runtime.services.turns.journal(turn_id, after=0, limit=99)
        events = [event for row in rows for event in row.events]
        causes += [event.cause for event in events if isinstance(event, StepRecovered)]

    assert causes == ["shutdown", "crash"]


async def _has_text(stage: Stage) -> bool:
    found = await query(
        stage.dsn, "SELECT 1 FROM turn_events WHERE events::text LIKE '%MODEL_TEXT%'"
    )
    return bool(found)


def _has_effects(stage: Stage, count: int) -> bool:
    return len(stage.ledger.effects()) >= count


async def _is_asked(stage: Stage) -> bool:
    return bool(stage.provider.requests(MODEL))
