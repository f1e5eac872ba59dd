"""Calls that need somebody's yes: what is approved, by whom, and what nothing else approves.

A desk looks at everything when its block ends: no payment without the approvals it needs, none
twice, none that its result does not tell of, and nobody waiting for a settled turn.
"""

from datetime import datetime

import pytest

from tests.e2e.conftest import Stage
from tests.support.waits import DONE, a_desk, asks, call, waiting_for

PAY = call("A", "gated_pay", amount=7)


async def test_a_call_waits_for_its_approval_and_is_done_once_it_has_it(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(PAY))
        entered_before = desk.bank.entered()
        done = await desk.approves(waiting, "A")
        events = await desk.events(done)

    wait = waiting_for(waiting)
    assert (waiting["status"], waiting["cursor"]) == ("WAITING_FOR_APPROVAL", "PROCESS_TOOLS")
    assert (wait["suspensionType"], wait["callId"]) == ("TOOL_APPROVAL", "A")
    assert wait["toolName"] == "gated_pay"
    assert (wait["arguments"], wait["stage"]) == ('{"amount": 7}', "policy")
    assert (wait["timeoutMillis"], wait["expiresAt"], wait["isExpired"]) == (None, None, False)
    offered = {(a["command"], a.get("callId")) for a in waiting["actions"] if a["enabled"]}
    assert {("APPROVE_TOOL", "A"), ("REJECT_TOOL", "A"), ("MESSAGE", None)} <= offered
    assert ("RETRY_MODEL", None) not in offered
    assert entered_before == []
    assert (done["status"], done["finalOutput"], done["waits"]) == ("COMPLETED", "Done.", [])
    assert desk.bank.paid() == [("A", 7)]
    (suspended,) = [e["data"] for e in events if e["type"] == "TURN_SUSPENDED"]
    assert (suspended["suspensionType"], suspended["correlationId"]) == ("TOOL_APPROVAL", "A")
    assert suspended["timeoutMillis"] is None
    assert datetime.fromisoformat(suspended["requestedAt"]) == datetime.fromisoformat(
        wait["requestedAt"]
    )
    types = [event["type"] for event in events]
    asked = types.index("TOOL_APPROVAL_REQUESTED")
    assert types[asked : asked + 5] == [
        "TOOL_APPROVAL_REQUESTED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
        "TOOL_APPROVAL_DECIDED",
        "TURN_RESUMED",
    ]


async def test_a_rejected_call_is_never_entered_and_the_model_reads_why(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(PAY, call("B", "look_up", what="b")))
        done = await desk.rejects(waiting, "A", "Too dear.")
        results = await desk.tool_messages()
        decided = await desk.listed(f"/turns/{done['turnId']}/approvals")

    assert done["status"] == "COMPLETED"
    assert [(m["callId"], m["outcome"]) for m in results] == [("A", "rejected"), ("B", "completed")]
    assert "Too dear." in results[0]["content"]
    assert "Too dear." in desk.requests()[-1][-2]["content"]
    assert [(d["callId"], d["approved"], d["reason"]) for d in decided] == [
        ("A", False, "Too dear.")
    ]
    assert desk.bank.entered() == ["look_up"]


# --- Commands -------------------------------------------------------------------------------------


async def test_case_9_an_approval_repeated_with_its_key_is_answered_as_before(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        turn = await desk.opens(asks(PAY))
        first = await desk.sends(turn, "APPROVE_TOOL", "A", key="key-1")
        again = await desk.sends(turn, "APPROVE_TOOL", "A", key="key-1")
        types = await desk.types(turn)

    assert (first.status_code, again.status_code) == (202, 202), again.text
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["turnId"] == turn["turnId"]
    assert types.count("TOOL_APPROVAL_DECIDED") == 1
    assert desk.bank.paid() == [("A", 7)]


async def test_case_10_a_key_that_approved_does_not_reject(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        turn = await desk.opens(asks(PAY, call("B", "gated_pay", amount=8)))
        first = await desk.sends(turn, "APPROVE_TOOL", "A", key="key-1")
        waiting = await desk.rests(first.json())
        reused = await desk.sends(turn, "REJECT_TOOL", "B", key="key-1", reason="No.")
        await desk.is_refused(waiting, reused, 422, "idempotency_key_reused")

    assert waiting_for(waiting)["callId"] == "B"


async def test_an_approval_names_the_call_that_waits_now(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        turn = await desk.opens(asks(PAY, call("B", "gated_pay", amount=8)))
        for call_id in ("B", "C", "a", "A "):
            answer = await desk.sends(turn, "APPROVE_TOOL", call_id)
            problem = await desk.is_refused(turn, answer, 409, "correlation_mismatch")
            assert "'A'" in problem["detail"]
        audited = await desk.audited(turn)

    assert [row for row in audited if row[0] == "APPROVE_TOOL"] == [
        ("APPROVE_TOOL", "refused", call_id) for call_id in ("B", "C", "a", "A ")
    ]


@pytest.mark.parametrize(
    "body",
    [
        {"command": "USER_INPUT", "callId": "A", "text": "yes"},
        {"command": "USER_INPUT", "callId": "A", "data": {"approved": True}},
        {"command": "TOOL_RESULT", "callId": "A", "output": "approved"},
        {"command": "TOOL_ERROR", "callId": "A", "code": "c", "message": "m"},
        {"command": "RETRY"},
        {"command": "CONTINUE"},
        {"command": "RESUME"},
        {"command": "RETRY_MODEL", "failureId": "A"},
    ],
    ids=str,
)
async def test_an_approval_is_given_by_no_other_command(
    stage: Stage, body: dict[str, object]
) -> None:
    async with a_desk(stage) as desk:
        turn = await desk.opens(asks(PAY))
        answer = await desk.service.resume(turn["turnId"], body, wait=0)
        paused = await desk.service.client.post(f"/turns/{turn['turnId']}/pause")
        await desk.is_refused(turn, answer, 409, "wrong_command")
        await desk.is_refused(turn, paused, 409, "wrong_command")

    assert desk.bank.entered() == []


DECISIONS: list[object] = [
    "aprove",
    "APPROVE",
    "approve_tool",
    "APPROVE_TOOL ",
    "",
    None,
    1,
    True,
    ["APPROVE_TOOL"],
    {"decision": "approve"},
    "yes",
    "edit",
]


async def test_scenario_043_only_the_exact_word_approves(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        turn = await desk.opens(asks(PAY))
        for decision in DECISIONS:
            answer = await desk.sends(turn, decision, "A")
            await desk.is_refused(turn, answer, 422, "payload_invalid")
        for more in ({"decision": "approve"}, {"approved": True}, {"reason": ""}):
            answer = await desk.sends(turn, "APPROVE_TOOL", "A", **more)
            await desk.is_refused(turn, answer, 422, "payload_invalid")

    assert desk.bank.entered() == []


async def test_scenario_044_declining_does_nothing_but_decline(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        turn = await desk.opens(asks(PAY))
        done = await desk.rejects(turn, "A", "x")
        results = await desk.results()
        audited = await desk.audited(done)

    assert (done["status"], results) == ("COMPLETED", [("A", "rejected")])
    assert ("REJECT_TOOL", "accepted", "A") in audited
    assert len(desk.requests()) == 2
    assert desk.bank.entered() == []


async def test_scenario_040_a_click_on_an_old_card_approves_nothing_newer(stage: Stage) -> None:
    dear = asks(call("B", "gated_pay", amount=1000))
    async with a_desk(stage) as desk:
        first = await desk.opens(asks(call("A", "gated_pay", amount=1)), dear)
        old = waiting_for(first)["fingerprint"]
        turn = await desk.rejects(first, "A")
        for more in ({}, {"fingerprint": old}):
            answer = await desk.sends(turn, "APPROVE_TOOL", "A", **more)
            await desk.is_refused(turn, answer, 409, "correlation_mismatch")
        moved = await desk.sends(turn, "APPROVE_TOOL", "B", fingerprint=old)
        await desk.is_refused(turn, moved, 409, "correlation_mismatch")
        audited = await desk.audited(turn)

    assert waiting_for(turn)["callId"] == "B"
    assert [row[1] for row in audited if row[0] == "APPROVE_TOOL"] == ["refused"] * 3
    assert desk.bank.entered() == []


async def test_scenario_053_a_card_of_an_ended_turn_is_of_no_use_for_the_next(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(PAY))
        ended = await desk.cancels(waiting)
        again = asks(call("B", "gated_pay", amount=7))
        turn = await desk.opens(DONE, DONE, again, text="Again.")  # two answers are there already
        old = waiting_for(waiting)["fingerprint"]
        of_the_old = await desk.sends(ended, "APPROVE_TOOL", "A", fingerprint=old)
        of_none = await desk.sends(turn, "APPROVE_TOOL", "A", fingerprint=old)
        of_the_wrong = await desk.sends(ended, "APPROVE_TOOL", "B")
        await desk.is_refused(ended, of_the_old, 409, "turn_terminal")
        await desk.is_refused(turn, of_none, 409, "correlation_mismatch")
        await desk.is_refused(ended, of_the_wrong, 409, "turn_terminal")
        done = await desk.approves(turn, "B")

    assert (ended["status"], done["status"]) == ("CANCELLED", "COMPLETED")
    assert desk.bank.paid() == [("B", 7)]


# --- Histories ------------------------------------------------------------------------------------


async def test_scenario_004_each_call_has_its_result_whatever_was_decided(stage: Stage) -> None:
    calls = asks(
        call("A", "gated_pay", amount=1),
        call("B", "gated_pay", amount=2),
        call("C", "look_up", what="c"),
    )
    async with a_desk(stage) as desk:
        turn = await desk.opens(calls)
        second = await desk.approves(turn, "A")
        done = await desk.rejects(second, "B")
        results = await desk.results()

    assert waiting_for(second)["callId"] == "B"
    assert done["status"] == "COMPLETED"
    assert results == [("A", "completed"), ("B", "rejected"), ("C", "completed")]
    assert [m["tool_call_id"] for m in desk.requests()[-1] if m["role"] == "tool"] == list("ABC")
    assert desk.bank.paid() == [("A", 1)]


async def test_scenario_025_an_approved_call_stands_in_the_history_once(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(PAY))
        await desk.approves(waiting, "A")
        said = await desk.messages()
        await desk.says("Thanks.")

    assert [m["role"] for m in said] == ["user", "assistant", "tool", "assistant"]
    sent = desk.requests()[-1]
    asked = [c["id"] for m in sent for c in m.get("tool_calls", ())]
    assert asked == ["A"]
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == ["A"]


async def test_case_82_a_message_gives_up_the_approval_and_what_comes_behind_it(
    stage: Stage,
) -> None:
    calls = asks(
        call("A", "pay", amount=1), call("B", "gated_pay", amount=2), call("C", "pay", amount=3)
    )
    async with a_desk(stage) as desk:
        waiting = await desk.opens(calls, asks(call("D", "gated_pay", amount=4)))
        turn = await desk.says("How much is it, actually?", messageId="m2")
        said = await desk.messages()
        late = await desk.sends(turn, "APPROVE_TOOL", "B")
        await desk.is_refused(turn, late, 409, "correlation_mismatch")
        types = await desk.types(turn)

    assert (waiting_for(waiting)["callId"], turn["turnId"]) == ("B", waiting["turnId"])
    assert [m.get("outcome") for m in said[2:5]] == ["completed", "superseded", "superseded"]
    assert (said[5]["role"], said[5]["messageId"]) == ("user", "m2")
    assert waiting_for(turn)["callId"] == "D"
    assert types.count("TOOL_INTERRUPTED") == 2
    assert "EXTERNAL_TOOL_CANCEL_REQUESTED" not in types
    assert desk.bank.paid() == [("A", 1)]


async def test_scenario_049_a_message_while_an_approval_is_open_is_taken_and_answered(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(PAY))
        done = await desk.says("Actually, how much is it?", messageId="m2")
        late = await desk.sends(
            done, "APPROVE_TOOL", "A", fingerprint=waiting_for(waiting)["fingerprint"]
        )
        await desk.is_refused(done, late, 409, "turn_terminal")
        sent = desk.requests()[-1]

    assert (done["turnId"], done["finalOutput"]) == (waiting["turnId"], "Done.")
    assert [m["role"] for m in sent[-3:]] == ["assistant", "tool", "user"]
    assert desk.bank.entered() == []
