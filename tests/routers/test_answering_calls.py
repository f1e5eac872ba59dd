"""Calls that wait for somebody: approved, rejected, filled in, done outside."""

from typing import Any

import pytest

from app.services.principal import Role
from app.turn.waits import InputNeeded
from tests.http.rig import assert_problem, fresh_id, unchanged
from tests.routers.stage import Stage
from tests.support.calls_that_wait import asked_for
from tests.support.transitions import STATES
from tests.support.turns import (
    QUESTION,
    QUOTA,
    REFUND,
    SHIP,
    WRITES,
    Told,
    a_call,
    an_agent,
)

ADDRESS = InputNeeded(
    form_key="address",
    schema='{"type":"object","required":["address"],"additionalProperties":false,"properties":'
    '{"address":{"type":"object","required":["zip"],"properties":{"zip":{"type":"integer"}}}}}',
    message="Where does it go?",
    title="Address",
)


async def test_an_approval_shows_exactly_what_is_asked_and_counts_for_that(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_APPROVAL"]())
    wait = turn["suspension"]
    request = fresh_id()

    done = await stage.rig.post(
        f"/turns/{turn['turnId']}/resume",
        {"command": "APPROVE_TOOL", "callId": "A", "fingerprint": wait["fingerprint"]},
        X_Request_Id=request,
    )

    assert turn["waits"] == [wait]
    assert (wait["suspensionType"], wait["correlationId"]) == ("TOOL_APPROVAL", "A")
    assert (wait["toolName"], wait["arguments"], wait["stage"]) == ("refund", "{}", "policy")
    assert [each["command"] for each in turn["actions"]][:2] == ["APPROVE_TOOL", "REJECT_TOOL"]
    assert (done.status_code, done.json()["status"]) == (202, "RUNNING")
    assert done.json()["waits"] == []
    [approval] = await stage.items(turn, "approvals")
    assert (approval["approved"], approval["actorId"]) == (True, "default")
    assert approval["fingerprint"] == wait["fingerprint"]
    assert approval["requestedAt"] == wait["requestedAt"]
    [row] = await stage.rig.rows("SELECT * FROM audit WHERE request_id = $1", request)
    assert (row["action"], row["outcome"], row["call_id"]) == ("APPROVE_TOOL", "accepted", "A")


async def test_a_rejection_needs_no_reason(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_APPROVAL"]())

    done = await stage.answer(turn, "REJECT_TOOL", callId="A")

    assert (done.status_code, done.json()["status"]) == (202, "RUNNING")
    [approval] = await stage.items(turn, "approvals")
    assert (approval["approved"], approval["reason"]) == (False, None)


async def test_case_100_a_card_of_an_older_request_approves_nothing(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_APPROVAL"]())

    older = await stage.answer(turn, "APPROVE_TOOL", callId="A", fingerprint="0" * 64)
    other = await stage.answer(turn, "APPROVE_TOOL", callId="Z")

    assert (
        turn["suspension"]["fingerprint"]
        in assert_problem(older, 409, "correlation_mismatch")["detail"]
    )
    assert "'A'" in assert_problem(other, 409, "correlation_mismatch")["detail"]
    assert await unchanged(stage.rig, turn)


async def test_a_rejection_tells_the_model_why(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_APPROVAL"]())

    done = await stage.answer(turn, "REJECT_TOOL", callId="A", reason="paid back before")

    assert done.json()["status"] == "RUNNING"
    [approval] = await stage.items(turn, "approvals")
    assert (approval["approved"], approval["reason"]) == (False, "paid back before")
    [(call_id, said)] = await stage.results(turn)
    assert call_id == "A"
    assert "paid back before" in said


async def test_whoever_asked_may_be_kept_from_approving_but_not_from_rejecting(
    stage: Stage,
) -> None:
    agent = an_agent(requester_may_approve=False)
    first, second = [
        await stage.in_state(asked_for(a_call("A", REFUND), agent=agent)) for _ in range(2)
    ]
    request = fresh_id()

    refused = await stage.rig.post(
        f"/turns/{first['turnId']}/resume",
        {"command": "APPROVE_TOOL", "callId": "A"},
        X_Request_Id=request,
    )

    assert first["suspension"]["excludesRequester"]
    assert "'default'" in assert_problem(refused, 403, "requester_may_not_approve")["detail"]
    assert await unchanged(stage.rig, first)
    [row] = await stage.rig.rows("SELECT * FROM audit WHERE request_id = $1", request)
    assert (row["outcome"], row["code"]) == ("refused", "requester_may_not_approve")
    assert (row["call_id"], row["turn_id"]) == ("A", first["turnId"])
    async with stage.rig.signed_in_as(Role.OPERATOR, actor="amy") as amy:
        body = {"command": "APPROVE_TOOL", "callId": "A"}
        approved = await amy.post(f"/turns/{first['turnId']}/resume", json=body)
    assert approved.status_code == 202
    assert (await stage.answer(second, "REJECT_TOOL", callId="A", reason="no")).status_code == 202


@pytest.mark.parametrize("how", ["message", "queued message", "replan", "answer"])
async def test_an_operator_who_has_said_something_in_a_conversation_is_one_who_asked(
    stage: Stage, how: str
) -> None:
    agent = an_agent(requester_may_approve=False)
    told = {
        "message": lambda: Told(agent).begun().gave_up(QUOTA),
        "queued message": lambda: Told(agent).begun(),
        "replan": lambda: Told(agent).begun().gave_up(QUOTA),
        "answer": lambda: asked_for(a_call("Q", QUESTION), agent=agent),
    }[how]()
    turn = await stage.in_state(told)
    path = f"/turns/{turn['turnId']}/resume"
    messages = f"/conversations/{turn['conversationId']}/messages"
    address, body = {
        "message": (messages, {"content": "pay it back"}),
        "queued message": (messages, {"content": "pay it back", "whenRunning": "queue"}),
        "replan": (path, {"command": "REPLAN_WITH_MESSAGE", "message": {"content": "pay"}}),
        "answer": (path, {"command": "USER_INPUT", "text": "pay it back"}),
    }[how]

    async with stage.rig.signed_in_as(Role.OPERATOR, actor="amy") as amy:
        assert (await amy.post(address, json=body)).status_code == 202
        waiting = await stage.goes_on(turn, a_call("A", REFUND), agent=agent)
        refused = await amy.post(path, json={"command": "APPROVE_TOOL", "callId": "A"})
    async with stage.rig.signed_in_as(Role.OPERATOR, actor="ben") as ben:
        approved = await ben.post(path, json={"command": "APPROVE_TOOL", "callId": "A"})

    assert waiting["status"] == "WAITING_FOR_APPROVAL"
    assert "'amy'" in assert_problem(refused, 403, "requester_may_not_approve")["detail"]
    assert approved.status_code == 202


async def without_its_agent(stage: Stage, state: str) -> dict[str, Any]:
    turn = await stage.in_state(STATES[state]())
    gone = "UPDATE turns SET agent_version = 'gone' WHERE turn_id = $1"
    await stage.rig.rows(gone, turn["turnId"])
    return await stage.rig.service.turn(turn["turnId"])


async def test_without_its_agent_a_call_can_be_rejected_and_not_be_answered(stage: Stage) -> None:
    approval = await without_its_agent(stage, "WAITING_FOR_APPROVAL")
    outside = await without_its_agent(stage, "WAITING_FOR_TOOL")
    form = await without_its_agent(stage, "WAITING_FOR_USER, a tool's form")

    approve = await stage.answer(approval, "APPROVE_TOOL", callId="A")
    give = await stage.answer(outside, "TOOL_RESULT", callId="A", output={})
    fill = await stage.answer(form, "USER_INPUT", callId="A", data={})
    reject = await stage.answer(approval, "REJECT_TOOL", callId="A", reason="no")

    for refused in (approve, give, fill):
        assert_problem(refused, 409, "agent_version_unavailable")
    assert reject.status_code == 202


@pytest.mark.parametrize("how", ["MESSAGE", "REPLAN_WITH_MESSAGE"])
@pytest.mark.parametrize(
    "state",
    [
        "WAITING_FOR_APPROVAL",
        "WAITING_FOR_TOOL",
        "WAITING_FOR_USER, a tool's form",
        "WAITING_FOR_USER, the model asks",
    ],
)
async def test_without_its_agent_a_message_closes_calls_unless_it_is_their_answer(
    stage: Stage, state: str, how: str
) -> None:
    turn = await without_its_agent(stage, state)
    offered = {each["command"]: each["enabled"] for each in turn["actions"]}
    is_answer = how == "MESSAGE" and state.endswith("the model asks")

    if how == "MESSAGE":
        path = f"/conversations/{turn['conversationId']}/messages"
        sent = await stage.rig.post(path, {"content": "never mind"})
    else:
        sent = await stage.answer(turn, how, message={"content": "never mind"})

    assert offered[how] is not is_answer
    now = await stage.rig.service.turn(turn["turnId"])
    if is_answer:
        assert_problem(sent, 409, "agent_version_unavailable")
        assert now == turn
    else:
        assert (sent.status_code, now["status"], now["waits"]) == (202, "RUNNING", [])
        cancelled = await stage.rig.post(f"/turns/{turn['turnId']}/cancel")
        assert cancelled.status_code == 202


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ("as it is\n€", "as it is\n€"),
        ("", ""),
        ({"kg": 3, "to": "Köln"}, '{"kg":3,"to":"Köln"}'),
        ([1, None], "[1,null]"),
        (False, "false"),
        (0, "0"),
    ],
    ids=str,
)
async def test_the_model_reads_a_text_as_it_is_and_all_else_as_json(
    stage: Stage, output: object, read: str
) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_TOOL"]())

    done = await stage.answer(turn, "TOOL_RESULT", callId="A", output=output)

    assert done.status_code == 202
    assert await stage.results(turn) == [("A", read)]


async def test_case_109_a_result_is_measured_in_bytes_and_a_shorter_one_may_follow(
    stage: Stage,
) -> None:
    turn = await stage.in_state(asked_for(a_call("A", SHIP)))
    assert turn["suspension"]["maxResultBytes"] == 99

    for too_long in ("€" * 34, "x" * 100, "x" * 2_000_000, ["x" * 96]):
        refused = await stage.answer(turn, "TOOL_RESULT", callId="A", output=too_long)
        assert_problem(refused, 413, "result_too_large")
    nothing = await stage.answer(turn, "TOOL_RESULT", callId="A", output=None)
    assert_problem(nothing, 422, "payload_invalid")
    assert await unchanged(stage.rig, turn)
    assert await stage.items(turn, "late-results") == []

    done = await stage.answer(turn, "TOOL_RESULT", callId="A", output="€" * 33)

    assert done.status_code == 202


async def test_a_body_that_no_result_needs_is_not_read(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_TOOL"]())

    refused = await stage.answer(turn, "TOOL_RESULT", callId="A", output="x" * 7_000_000)

    assert_problem(refused, 413, "payload_too_large")
    assert await unchanged(stage.rig, turn)


async def test_case_104_each_field_that_breaks_the_frozen_schema_is_named(stage: Stage) -> None:
    told = asked_for(a_call("A", WRITES)).finished("A", needs=ADDRESS)
    turn = await stage.in_state(told)
    wait = turn["suspension"]

    async def fields(data: object) -> list[str]:
        refused = await stage.answer(turn, "USER_INPUT", callId="A", data=data)
        problem = assert_problem(refused, 422, "payload_invalid")
        assert all(each["problem"] for each in problem["errors"])
        assert problem["allowedActions"] == turn["actions"]
        return [each["field"] for each in problem["errors"]]

    assert (wait["suspensionType"], wait["askedBy"]) == ("USER_INPUT", "tool")
    assert (wait["formKey"], wait["title"]) == ("address", "Address")
    assert wait["schema"]["required"] == ["address"]
    assert await fields({}) == ["/data/address"]
    assert await fields({"address": {"zip": "X"}}) == ["/data/address/zip"]
    assert await fields({"address": {"zip": 1}, "a/b~": 1}) == ["/data/a~1b~0"]
    assert await unchanged(stage.rig, turn)

    done = await stage.answer(turn, "USER_INPUT", data={"address": {"zip": 10115}})

    assert (done.status_code, done.json()["status"]) == (202, "RUNNING")
    received = (await stage.events_behind(turn["turnId"], turn["version"]))[0]
    assert received.type == "TOOL_INPUT_RECEIVED"
    assert getattr(received, "data", None) == '{"address":{"zip":10115}}'


async def test_a_form_is_filled_in_with_values_and_not_with_words(stage: Stage) -> None:
    turn = await stage.in_state(asked_for(a_call("A", WRITES)).finished("A", needs=ADDRESS))

    said = await stage.answer(turn, "USER_INPUT", callId="A", text="to Berlin")

    assert_problem(said, 422, "payload_invalid")
    assert await unchanged(stage.rig, turn)


async def test_what_the_model_asks_in_words_is_answered_in_words(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_USER, the model asks"]())

    filled = await stage.answer(turn, "USER_INPUT", callId="A", data={"city": "Tokyo"})
    said = await stage.answer(turn, "USER_INPUT", text="Tokyo")

    assert_problem(filled, 422, "payload_invalid")
    assert said.status_code == 202
    assert await stage.results(turn) == [("A", "Tokyo")]


async def test_a_strict_form_keeps_messages_out(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_USER, a tool's strict form"]())

    refused = await stage.rig.post(
        f"/conversations/{turn['conversationId']}/messages", {"content": "never mind"}
    )

    assert_problem(refused, 409, "wrong_command")
    assert {"command": "MESSAGE", "enabled": False, "reason": "form_waits"} in turn["actions"]
    assert await unchanged(stage.rig, turn)


async def test_calls_that_wait_together_are_answered_in_any_order(stage: Stage) -> None:
    turn = await stage.in_state(
        STATES["WAITING_FOR_APPROVAL, another call waits together with it"]()
    )

    second = (await stage.answer(turn, "TOOL_RESULT", callId="B", output="sent")).json()

    assert [wait["callId"] for wait in turn["waits"]] == ["A", "B"]
    assert turn["suspension"] == turn["waits"][0]
    assert (second["status"], second["suspension"]) == ("WAITING_FOR_APPROVAL", turn["waits"][0])
    assert (await stage.answer(turn, "APPROVE_TOOL", callId="A")).json()["status"] == "RUNNING"


async def test_a_turn_at_work_shows_what_its_calls_wait_for(stage: Stage) -> None:
    turn = await stage.in_state(STATES["RUNNING, a tool is begun, another call waits"]())

    assert (turn["status"], turn["suspension"]) == ("RUNNING", None)
    assert [(w["suspensionType"], w["callId"]) for w in turn["waits"]] == [("EXTERNAL_TOOL", "A")]
    assert turn["waits"][0]["idempotencyKey"] == f"{turn['turnId']}:A"


async def test_case_9_an_approval_under_a_key_is_given_once(stage: Stage) -> None:
    turn, key = await stage.in_state(STATES["WAITING_FOR_APPROVAL"]()), fresh_id()
    path, body = f"/turns/{turn['turnId']}/resume", {"command": "APPROVE_TOOL", "callId": "A"}

    first = await stage.rig.post(path, body, Idempotency_Key=key)
    again = await stage.rig.post(path, body, Idempotency_Key=key)
    other = await stage.rig.post(
        path, {"command": "REJECT_TOOL", "callId": "A", "reason": "no"}, Idempotency_Key=key
    )

    assert again.content == first.content
    assert again.headers["Idempotency-Replayed"] == "true"
    assert_problem(other, 422, "idempotency_key_reused")
    assert len(await stage.items(turn, "approvals")) == 1
