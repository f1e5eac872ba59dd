"""`APPROVE_TOOL`, `REJECT_TOOL`, `TOOL_RESULT`, `TOOL_ERROR`: understood, and refused by state."""

from typing import Any

import pytest

from tests.http.rig import Rig, assert_problem, fresh_id, unchanged

COMMANDS: list[dict[str, Any]] = [
    {"command": "APPROVE_TOOL", "callId": "call_1"},
    {"command": "APPROVE_TOOL", "callId": "call_1", "fingerprint": "f"},
    {"command": "REJECT_TOOL", "callId": "call_1", "reason": "too dear"},
    {"command": "TOOL_RESULT", "callId": "call_1", "output": {"paid": [7, None]}},
    {"command": "TOOL_RESULT", "callId": "call_1", "output": ""},
    {"command": "TOOL_RESULT", "callId": "call_1", "output": False},
    {"command": "TOOL_ERROR", "callId": "call_1", "code": "gone", "message": "Not there."},
]


@pytest.mark.parametrize("body", COMMANDS, ids=str)
async def test_case_19_a_waiting_turn_says_what_it_takes_instead(
    rig: Rig, still: dict[str, Any], body: dict[str, Any]
) -> None:
    request = fresh_id()

    answer = await rig.post(f"/turns/{still['turnId']}/resume", body, X_Request_Id=request)

    refused = assert_problem(answer, 409, "wrong_command")
    assert refused["currentStatus"] == "WAITING_FOR_MODEL"
    assert refused["allowedActions"] == still["actions"]
    assert await unchanged(rig, still)
    rows = await rig.rows("SELECT action, outcome FROM audit WHERE request_id = $1", request)
    assert rows == [{"action": body["command"], "outcome": "refused"}]


@pytest.mark.parametrize("body", COMMANDS, ids=str)
async def test_a_turn_at_work_and_one_that_has_ended_take_none_of_them(
    rig: Rig, body: dict[str, Any]
) -> None:
    running, ended = await rig.running(), await rig.completed()

    at_work = await rig.post(f"/turns/{running['turnId']}/resume", body)
    over = await rig.post(f"/turns/{ended['turnId']}/resume", body)

    assert_problem(at_work, 409, "turn_not_blocked")
    assert_problem(over, 409, "turn_terminal")
    await rig.post(f"/turns/{running['turnId']}/cancel")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"command": "APPROVE_TOOL"}, "callId"),
        ({"command": "APPROVE_TOOL", "callId": ""}, "callId"),
        ({"command": "APPROVE_TOOL", "callId": "c", "fingerprint": 7}, "fingerprint"),
        ({"command": "APPROVE_TOOL", "callId": "c", "reason": "fine"}, "reason"),
        ({"command": "REJECT_TOOL", "callId": "c", "reason": None}, "reason"),
        ({"command": "REJECT_TOOL", "callId": "c", "reason": "x" * 10_001}, "reason"),
        ({"command": "TOOL_RESULT", "callId": "c"}, "output"),
        ({"command": "TOOL_RESULT", "callId": "c", "output": None}, "null says nothing"),
        ({"command": "TOOL_ERROR", "callId": "c", "code": "gone"}, "message"),
        ({"command": "TOOL_ERROR", "callId": "c", "message": "no"}, "code"),
        ({"command": "TOOL_ERROR", "callId": "c", "code": "g", "message": "n", "x": 1}, "x"),
    ],
)
async def test_one_that_lacks_a_part_or_has_one_too_many_is_no_command(
    rig: Rig, still: dict[str, Any], body: dict[str, Any], said: str
) -> None:
    answer = await rig.post(f"/turns/{still['turnId']}/resume", body)

    assert said in assert_problem(answer, 422, "payload_invalid")["detail"]
    assert await unchanged(rig, still)
