"""Answers and results that come too late: refused, and what somebody has done is kept aside."""

from datetime import timedelta

import pytest

from app.turn.agent import OnExpiry, WaitPolicy
from app.turn.waits import InputNeeded
from tests.http.rig import assert_problem, unchanged
from tests.routers.stage import Stage
from tests.support.calls_that_wait import asked_for
from tests.support.transitions import STATES
from tests.support.turns import SHIP, WRITES, a_call, an_agent


async def test_case_11_the_first_result_stands_and_the_second_is_kept_aside(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_TOOL"]())
    await stage.answer(turn, "TOOL_RESULT", callId="A", output="first")

    again = await stage.answer(turn, "TOOL_RESULT", callId="A", output="second")
    failed = await stage.answer(turn, "TOOL_ERROR", callId="A", code="gone", message="it\0broke")

    assert_problem(again, 409, "turn_not_blocked")
    assert_problem(failed, 409, "turn_not_blocked")
    assert await stage.results(turn) == [("A", "first")]
    late = await stage.items(turn, "late-results")
    assert [(r["callId"], r["command"], r["code"], r["text"], r["isCut"]) for r in late] == [
        ("A", "TOOL_RESULT", None, "second", False),
        ("A", "TOOL_ERROR", "gone", "it\0broke", False),
    ]
    assert {each["actorId"] for each in late} == {"default"}


async def test_a_late_result_is_kept_whatever_the_turn_does_by_then(stage: Stage) -> None:
    replanned = await stage.in_state(STATES["WAITING_FOR_TOOL"]().posted("no, this"))
    ended = await stage.in_state(STATES["WAITING_FOR_TOOL"]().cancelled())
    waits_on = await stage.in_state(
        asked_for(a_call("A", SHIP), a_call("B", SHIP)).gave("A").begun()
    )

    codes = [
        (await stage.answer(turn, "TOOL_RESULT", callId="A", output="done")).json()["code"]
        for turn in (replanned, ended, waits_on)
    ]

    assert codes == ["turn_not_blocked", "turn_terminal", "correlation_mismatch"]
    for turn in (replanned, ended, waits_on):
        assert [each["text"] for each in await stage.items(turn, "late-results")] == ["done"]
        assert await unchanged(stage.rig, turn)


async def test_a_result_for_a_call_of_the_round_that_is_not_outside_is_kept_as_well(
    stage: Stage,
) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_TOOL"]())

    not_yet = await stage.answer(turn, "TOOL_RESULT", callId="B", output="early")
    unknown = await stage.answer(turn, "TOOL_RESULT", callId="Z\0", output="whose?")

    assert_problem(not_yet, 409, "correlation_mismatch")
    assert_problem(unknown, 409, "correlation_mismatch")
    assert [each["text"] for each in await stage.items(turn, "late-results")] == ["early"]


async def test_a_result_is_not_kept_where_another_answer_is_waited_for(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_APPROVAL"]())

    refused = await stage.answer(turn, "TOOL_RESULT", callId="A", output="done")

    assert_problem(refused, 409, "wrong_command")
    assert await stage.items(turn, "late-results") == []


async def test_of_a_long_late_result_the_beginning_is_kept(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_TOOL"]().cancelled())

    await stage.answer(turn, "TOOL_RESULT", callId="A", output="€" * 30_000)

    [late] = await stage.items(turn, "late-results")
    assert late["isCut"]
    assert late["text"] == "€" * (64 * 1024 // 3)


@pytest.mark.parametrize(
    ("state", "then"),
    [
        ("kept", "WAITING_FOR_TOOL"),
        ("to be answered", "RUNNING"),
        ("to fail", "FAILED"),
        ("to be cancelled", "CANCELLED"),
    ],
)
async def test_case_119_an_answer_behind_its_time_is_refused_and_decides_nothing(
    stage: Stage, state: str, then: str
) -> None:
    turn = await stage.in_state(STATES[f"WAITING_FOR_TOOL, its time is over, {state}"]())

    refused = await stage.answer(turn, "TOOL_RESULT", callId="A", output="late")

    problem = assert_problem(refused, 409, "wait_expired")
    assert problem["currentStatus"] == then
    now = await stage.rig.service.turn(turn["turnId"])
    assert (now["status"], now["version"]) == (then, problem["currentVersion"])
    assert (now == turn) == (state == "kept")
    assert [each["text"] for each in await stage.items(turn, "late-results")] == ["late"]
    assert await stage.rig.rows(
        "SELECT status FROM external_calls WHERE turn_id = $1", turn["turnId"]
    ) == [{"status": "open" if state == "kept" else "cancelled"}]


@pytest.mark.parametrize("on_expiry", ["keep", "answer_expired"])
async def test_case_119_values_that_come_too_late_are_late_before_they_are_wrong(
    stage: Stage, on_expiry: OnExpiry
) -> None:
    wait = WaitPolicy(timeout=timedelta(minutes=1), on_expiry=on_expiry)
    form = InputNeeded(form_key="address", schema='{"type":"object","required":["city"]}')
    told = asked_for(a_call("A", WRITES), agent=an_agent(wait=wait)).finished("A", needs=form)
    turn = await stage.in_state(told)

    refused = await stage.answer(turn, "USER_INPUT", callId="A", data={})

    assert_problem(refused, 409, "wait_expired")
    now = await stage.rig.service.turn(turn["turnId"])
    assert now["status"] == ("RUNNING" if on_expiry == "answer_expired" else "WAITING_FOR_USER")


async def test_a_kept_wait_says_that_its_time_is_over(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_TOOL, its time is over, kept"]())

    wait = turn["suspension"]
    assert (wait["isExpired"], wait["onExpiry"], wait["timeoutMillis"]) == (True, "keep", 60_000)
    assert wait["expiresAt"] > wait["requestedAt"]
    assert turn["actions"][0] == {
        "command": "TOOL_RESULT",
        "enabled": False,
        "callId": "A",
        "reason": "wait_expired",
    }
