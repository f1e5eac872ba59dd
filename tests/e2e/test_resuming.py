"""Going on without a new message: from every state and every end, over real HTTP."""

from collections.abc import AsyncGenerator

import pytest

from app.agents import Agent
from app.turn.agent import Limits
from tests.e2e.conftest import Stage
from tests.http.rig import assert_problem, fresh_id, rows
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.processes import serving
from tests.support.resuming import last_request, point_of, resume
from tests.support.service import Service, SignedIn, running_service
from tests.support.story import MODEL, QUOTA, THREE_CALLS, clerk

BRIEF = "brief"
CUT = {"text": "To begin with, ", "stop": "length"}


@pytest.fixture
async def service(stage: Stage) -> AsyncGenerator[Service]:
    agents = [
        clerk(stage.ledger),
        Agent(id=BRIEF, instructions="", model=MODEL, limits=Limits(max_steps=2)),
    ]
    async with running_service(stage.dsn, stage.settings, agents=agents) as running:
        yield running
    await check_everything(stage.dsn, stage.ledger)


async def types_of(service: SignedIn, turn_id: str) -> list[str]:
    answer = await service.client.get(
        f"/turns/{turn_id}/events", headers={"Accept": "text/event-stream"}
    )
    return [
        line.removeprefix("event: ")
        for line in answer.text.splitlines()
        if line.startswith("event: ")
    ]


# --- Ends ----------------------------------------------------------------------------------------


async def test_case_28_a_cut_answer_is_continued_and_told_so_once(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [CUT, {"text": "there was nothing."}])
    cut = await service.send("c1", "Tell me.", agentId="clerk")

    point = await point_of(service, "c1")
    answer = await resume(service, "c1")

    turn = answer.json()
    assert (cut["status"], cut["stopReason"]) == ("COMPLETED", "MAX_OUTPUT")
    assert (point["kind"], point["stop"]) == ("CONTINUE_RESPONSE", "MAX_OUTPUT")
    assert point["turnId"] == cut["turnId"] == turn["resumesTurnId"]
    assert (turn["status"], turn["finalOutput"]) == ("COMPLETED", "there was nothing.")
    assert [message["role"] for message in last_request(stage.provider)] == [
        "user",
        "assistant",
        "user",
    ]
    assert (await service.turn(cut["turnId"]))["version"] == cut["version"]


async def test_case_29_an_answer_that_is_cut_again_is_continued_again(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [CUT, CUT, {"text": "The end."}])
    await service.send("c1", "Tell me.", agentId="clerk")

    first, second = await resume(service, "c1"), await resume(service, "c1")

    assert [turn.json()["stopReason"] for turn in (first, second)] == ["MAX_OUTPUT", "END_TURN"]
    assert second.json()["resumesTurnId"] == first.json()["turnId"]


async def test_a_continuation_that_fails_is_not_told_again(service: Service, stage: Stage) -> None:
    stage.provider.script(MODEL, [CUT, {"text": "The end.", "faults": [QUOTA]}])
    await service.send("c1", "Tell me.", agentId="clerk")
    waiting = (await resume(service, "c1")).json()
    cancelled = await service.client.post(f"/turns/{waiting['turnId']}/cancel")

    point = await point_of(service, "c1")
    done = await resume(service, "c1")

    assert cancelled.json()["status"] == "CANCELLED"
    assert point["kind"] == "CALL_MODEL"
    assert done.json()["status"] == "COMPLETED"
    assert [message["role"] for message in last_request(stage.provider)] == [
        "user",
        "assistant",
        "user",
    ]


async def test_case_80_a_resumed_turn_has_the_events_of_any_other_and_what_it_recovered(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [{"text": "Well."}, {"text": "Well."}])
    await service.send("c1", "Tell me.", agentId="clerk", hold=True)
    held = (await service.client.get("/conversations/c1")).json()["activeTurn"]
    await service.client.post(f"/turns/{held['turnId']}/cancel")

    resumed = (await resume(service, "c1")).json()
    plain = await service.send("c2", "Tell me.", agentId="clerk")

    of_resumed = await types_of(service, resumed["turnId"])
    of_plain = await types_of(service, plain["turnId"])
    assert of_resumed[:2] == ["TURN_STARTED", "STEP_RECOVERED"]
    assert of_plain[:2] == ["TURN_STARTED", "MESSAGE_ADDED"]
    assert of_resumed[2:] == of_plain[2:]


async def test_case_128_a_cancelled_turn_is_gone_on_from_and_its_closing_message_is_not_sent(
    service: Service, stage: Stage
) -> None:
    slow = {
        "text": "",
        "calls": [{"id": "A", "name": "look_up_slowly", "arguments": '{"what":"a"}'}],
    }
    stage.provider.script(MODEL, [slow, {"text": "All right."}])
    turn = await service.send("c1", "Look it up.", agentId="clerk", wait=0)
    await eventually(lambda: _is_entered(stage))
    await service.client.post(f"/turns/{turn['turnId']}/cancel")
    stage.ledger.open_gate()
    cancelled = await service.at_rest(turn["turnId"])

    again = await service.client.post(f"/turns/{turn['turnId']}/cancel")
    point = await point_of(service, "c1")
    done = (await resume(service, "c1")).json()

    assert (cancelled["status"], again.status_code) == ("CANCELLED", 200)
    assert point["kind"] == "CALL_MODEL"
    assert done["status"] == "COMPLETED"
    assert [message["role"] for message in last_request(stage.provider)] == [
        "user",
        "assistant",
        "tool",
    ]
    refused = await service.client.post(
        f"/turns/{turn['turnId']}/resume", json={"command": "RESUME"}
    )
    assert_problem(refused, 409, "turn_terminal")


async def _is_entered(stage: Stage) -> bool:
    return bool(stage.ledger.effects())


async def test_a_turn_at_its_limit_is_gone_on_from_with_a_budget_of_its_own(
    service: Service, stage: Stage
) -> None:
    calls = {"text": "", "calls": [{"id": "A", "name": "nothing", "arguments": "{}"}]}
    stage.provider.script(MODEL, [calls, calls | {"calls": [*calls["calls"]]}, {"text": "Done."}])
    limited = await service.send("c1", "Go on.", agentId=BRIEF)

    point = await point_of(service, "c1")
    done = (await resume(service, "c1")).json()

    assert limited["status"] == "MAX_STEPS_REACHED"
    assert point["kind"] == "CALL_MODEL"
    assert done["status"] == "COMPLETED"


async def test_case_30_a_refusal_is_not_resumed(service: Service, stage: Stage) -> None:
    stage.provider.script(MODEL, [{"text": "", "stop": "content_filter"}])
    await service.send("c1", "Tell me.", agentId="clerk")

    point = await point_of(service, "c1")
    refused = assert_problem(await resume(service, "c1"), 409, "not_resumable")

    assert (point["resumable"], point["reason"]) == (False, "refused")
    assert refused["reason"] == "refused"


async def test_case_73_a_finished_answer_is_no_error_for_the_lenient(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [{"text": "Done."}])
    done = await service.send("c1", "Go.", agentId="clerk")

    strict = await resume(service, "c1")
    lenient = await resume(service, "c1", {"lenient": True})

    assert assert_problem(strict, 409, "not_resumable")["reason"] == "completed"
    assert (lenient.status_code, lenient.json()) == (200, await service.turn(done["turnId"]))
    assert len(stage.provider.requests(MODEL)) == 1


async def test_case_75_an_empty_conversation_has_nothing_to_resume(service: Service) -> None:
    await service.client.put("/conversations/c1")

    point = await point_of(service, "c1", "zh")
    refused = assert_problem(await resume(service, "c1", {"lenient": True}), 409, "not_resumable")

    assert point == {"resumable": False, "reason": "empty", "description": "无需继续：对话为空。"}
    assert refused["reason"] == "empty"


# --- Turns that are not over ---------------------------------------------------------------------


async def test_a_turn_that_waits_for_its_model_is_resumed_by_the_current_failure_alone(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [{"text": "Done.", "faults": [QUOTA]}])
    waiting = await service.send("c1", "Go.", agentId="clerk")

    point = await point_of(service, "c1")
    missing = assert_problem(await resume(service, "c1"), 409, "correlation_mismatch")
    stale = await resume(service, "c1", {"failureId": "another"})
    done = await resume(service, "c1", {"failureId": waiting["failureId"]})

    assert (point["kind"], point["failureId"]) == ("CALL_MODEL", waiting["failureId"])
    assert missing["currentFailureId"] == waiting["failureId"]
    assert waiting["failureId"] in assert_problem(stale, 409, "correlation_mismatch")["detail"]
    assert (done.json()["turnId"], done.json()["status"]) == (waiting["turnId"], "COMPLETED")


async def test_case_129_a_paused_turn_goes_on_under_its_own_id(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [{"text": "Done."}])
    held = await service.send("c1", "Go.", agentId="clerk", hold=True, wait=0)
    held_point = await point_of(service, "c1")
    await service.client.post(f"/turns/{held['turnId']}/pause")

    point = await point_of(service, "c1")
    done = await resume(service, "c1")

    assert (held_point["reason"], held_point["status"]) == ("waiting", "READY")
    assert "RUN" in [action["command"] for action in held_point["actions"]]
    assert point["kind"] == "CALL_MODEL"
    assert (done.json()["turnId"], done.json()["status"]) == (held["turnId"], "COMPLETED")


async def test_case_81_a_client_that_asks_while_a_turn_runs_changes_nothing(
    service: Service, stage: Stage
) -> None:
    slow = {"id": "A", "name": "look_up_slowly", "arguments": '{"what": "a"}'}
    stage.provider.script(MODEL, [{"text": "", "calls": [slow]}, {"text": "Done."}])
    turn = await service.send("c1", "Look it up.", agentId="clerk", wait=0)
    await eventually(lambda: _is_entered(stage))

    before = await rows(stage.dsn, "SELECT version, body, updated_at FROM turns")
    points = [await point_of(service, "c1") for _ in range(3)]
    refused = assert_problem(await resume(service, "c1"), 409, "not_resumable")
    after = await rows(stage.dsn, "SELECT version, body, updated_at FROM turns")
    stage.ledger.open_gate()
    await service.at_rest(turn["turnId"])

    assert {(point["reason"], point["turnId"]) for point in points} == {("running", turn["turnId"])}
    assert (refused["reason"], refused["currentStatus"]) == ("running", "RUNNING")
    assert before == after


async def test_another_model_is_called_and_recorded(service: Service, stage: Stage) -> None:
    stage.provider.script(MODEL, [{"text": "Done.", "faults": [QUOTA]}])
    stage.provider.script("larger", [{"text": "I am larger."}])
    waiting = await service.send("c1", "Go.", agentId="clerk")

    asked = {"failureId": waiting["failureId"], "model": "larger"}
    done = (await resume(service, "c1", asked)).json()

    assert done["finalOutput"] == "I am larger."
    events = await service.client.get(
        f"/turns/{done['turnId']}/events", headers={"Accept": "text/event-stream"}
    )
    assert '"model":"larger"' in events.text


@pytest.mark.parametrize("said", ["messages", "message", "content"])
async def test_case_74_a_resume_takes_no_messages(service: Service, said: str) -> None:
    await service.client.put("/conversations/c1")

    refused = await resume(service, "c1", {said: "hello"})
    lacking = await service.client.post("/conversations/c1/messages", json={})

    assert_problem(refused, 422, "messages_not_allowed")
    assert_problem(lacking, 422, "messages_required")


async def test_a_resume_under_a_key_has_its_effect_once(service: Service, stage: Stage) -> None:
    stage.provider.script(MODEL, [CUT, CUT, CUT])
    await service.send("c1", "Tell me.", agentId="clerk")
    key = fresh_id()

    first = await resume(service, "c1", Idempotency_Key=key)
    again = await resume(service, "c1", Idempotency_Key=key)

    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(stage.provider.requests(MODEL)) == 2


async def test_case_66_a_lost_round_is_seen_without_a_change_and_resumed(
    stage: Stage,
) -> None:
    slow = {"id": "D", "name": "pay_slowly", "arguments": '{"amount": 4}'}
    stage.provider.script(MODEL, [THREE_CALLS | {"calls": [slow]}, {"text": "All done."}])
    async with serving(stage.dsn, stage.ledger, stage.provider.base_url) as process:
        turn = await process.send("c1", "Pay it.", agentId="clerk", wait=0)
        await eventually(lambda: _is_entered(stage))
        running = await point_of(process, "c1")
        await process.kill()
    await rows(stage.dsn, "UPDATE turns SET claimed_until = clock_timestamp()")
    agents = [clerk(stage.ledger)]
    async with running_service(stage.dsn, stage.settings, agents=agents, with_worker=False) as idle:
        before = await rows(stage.dsn, "SELECT * FROM turns")
        point = await point_of(idle, "c1")
        after = await rows(stage.dsn, "SELECT * FROM turns")
        taken = await idle.client.post("/conversations/c1/resume")
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        done = await service.at_rest(turn["turnId"])

    assert (running["reason"], running["status"]) == ("running", "RUNNING")
    assert before == after
    assert point["kind"] == "RECOVER_TOOLS"
    assert point["unansweredToolCalls"] == [
        {"callId": "D", "toolName": "pay_slowly", "rule": "report"}
    ]
    assert (taken.status_code, taken.json()["turnId"]) == (202, turn["turnId"])
    assert done["status"] == "COMPLETED"
    assert stage.ledger.tools() == ["pay_slowly"]
    await check_everything(stage.dsn, stage.ledger)
