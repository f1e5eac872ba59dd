"""Work done outside: handed over once, taken back as it comes, called off when it is not wanted."""

import asyncio
from typing import Any

import pytest

from app.agents import Limits
from app.services.principal import Role
from tests.e2e.conftest import Stage
from tests.support.polling import eventually
from tests.support.waits import Desk, Turn, a_desk, asks, call, waiting_for
from tests.support.waits_cashier import SMALL, slow_cashier

SCAN = call("A", "scan", parcel="p1")
REASONED = {"reasoning": "First the parcel has to be scanned."} | asks(SCAN)


async def late(desk: Desk, turn: Turn) -> list[tuple[str, str]]:
    """Call and kind of what was kept of a turn's late results, in order."""
    kept = await desk.listed(f"/turns/{turn['turnId']}/late-results")
    return [(item["callId"], item["command"]) for item in kept]


async def test_a_call_is_handed_over_and_goes_on_with_what_was_done(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN))
        done = await desk.delivers(waiting, "A", {"weight": 3})
        results = await desk.tool_messages()
        events = await desk.events(done)

    wait = waiting_for(waiting)
    assert (waiting["status"], wait["suspensionType"]) == ("WAITING_FOR_TOOL", "EXTERNAL_TOOL")
    assert (wait["callId"], wait["toolName"]) == ("A", "scan")
    assert wait["arguments"] == '{"parcel": "p1"}'
    assert wait["idempotencyKey"] == f"{waiting['turnId']}:A"
    assert (waiting["counters"]["toolCalls"], done["counters"]["toolCalls"]) == (1, 1)
    assert (done["status"], results[0]["outcome"]) == ("COMPLETED", "completed")
    assert results[0]["content"].replace(" ", "") == '{"weight":3}'
    (asked,) = [e["data"] for e in events if e["type"] == "EXTERNAL_TOOL_REQUESTED"]
    assert (asked["callId"], asked["arguments"]) == ("A", '{"parcel": "p1"}')
    assert asked["idempotencyKey"] == f"{waiting['turnId']}:A"
    types = [event["type"] for event in events]
    at = types.index("EXTERNAL_TOOL_COMPLETED")
    assert types[at - 2 : at + 2] == [
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
        "EXTERNAL_TOOL_COMPLETED",
        "TURN_RESUMED",
    ]


@pytest.mark.parametrize("output", ["", "text", 0, False, [], {}, {"a": [None, "ü"]}], ids=str)
async def test_any_json_but_null_is_a_result(stage: Stage, output: object) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN))
        done = await desk.delivers(waiting, "A", output)
        results = await desk.results()

    assert (done["status"], results) == ("COMPLETED", [("A", "completed")])


async def test_case_11_a_second_result_changes_nothing(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN, call("B", "scan", parcel="p2")))
        turn = await desk.delivers(waiting, "A", "first")
        again = await desk.sends(turn, "TOOL_RESULT", "A", output="second")
        await desk.is_refused(turn, again, 409, "correlation_mismatch")
        kept = await late(desk, turn)
        results = await desk.tool_messages()

    assert [m["content"] for m in results if m["callId"] == "A"] == ["first"]
    assert kept == [("A", "TOOL_RESULT")]


async def test_scenario_017_of_two_results_at_once_one_is_taken(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN))
        both = await asyncio.gather(
            *(desk.sends(waiting, "TOOL_RESULT", "A", output={"v": 1}, wait=0) for _ in range(2))
        )
        done = await desk.rests(waiting)
        other = await desk.sends(done, "TOOL_RESULT", "A", output={"v": 2})
        await desk.is_refused(done, other, 409, "turn_terminal")
        results = await desk.tool_messages()
        types = await desk.types(done)

    assert sorted(answer.status_code for answer in both) == [202, 409]
    assert [m["content"].replace(" ", "") for m in results] == ['{"v":1}']
    assert types.count("TURN_RESUMED") == 1
    assert len(desk.requests()) == 2


async def test_case_87_a_message_calls_off_what_is_outside_and_nothing_else(stage: Stage) -> None:
    calls = asks(SCAN, call("B", "scan", parcel="p2"), call("C", "pay", amount=1))
    async with a_desk(stage) as desk:
        first = await desk.opens(calls)
        waiting = await desk.delivers(first, "A", "scanned")
        done = await desk.says("Stop that.", messageId="m2")
        events = await desk.events(done)
        results = await desk.results()
        listed = await desk.listed("/external-calls", status="open")
        interrupted = await desk.listed(f"/turns/{done['turnId']}/interruptions")

    assert (waiting_for(waiting)["callId"], done["turnId"]) == ("B", waiting["turnId"])
    assert results == [("A", "completed"), ("B", "unknown"), ("C", "superseded")]
    called_off = [e["data"]["callId"] for e in events if "CANCEL_REQUESTED" in e["type"]]
    assert called_off == ["B"]
    types = [event["type"] for event in events[waiting["version"] :]]
    assert types[:3] == ["TOOL_INTERRUPTED", "TOOL_INTERRUPTED", "EXTERNAL_TOOL_CANCEL_REQUESTED"]
    assert types.index("EXTERNAL_TOOL_CANCEL_REQUESTED") < types.index("TURN_RESUMED")
    assert [row["callId"] for row in interrupted] == ["B", "C"]
    assert listed == []
    assert desk.bank.entered() == []


async def test_case_88_a_late_result_is_refused_and_kept_where_no_model_reads_it(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        await desk.opens(asks(SCAN), asks(call("B", "scan", parcel="p2")))
        turn = await desk.says("Something else.")
        before = await desk.messages()
        for command, more in (
            ("TOOL_RESULT", {"output": "secret-late"}),
            ("TOOL_ERROR", {"code": "gone", "message": "secret-late"}),
        ):
            answer = await desk.sends(turn, command, "A", **more)
            await desk.is_refused(turn, answer, 409, "correlation_mismatch")
        unknown = await desk.sends(turn, "TOOL_RESULT", "Z", output="of nobody")
        await desk.is_refused(turn, unknown, 409, "correlation_mismatch")
        kept = await late(desk, turn)
        after = await desk.messages()
        done = await desk.delivers(turn, "B", "in time")
        at_the_end = await desk.sends(done, "TOOL_RESULT", "A", output="secret-late")
        await desk.is_refused(done, at_the_end, 409, "turn_terminal")
        kept_behind_the_end = await late(desk, done)
        async with desk.as_somebody(Role.USER, "somebody") as somebody:
            path = f"/turns/{turn['turnId']}/late-results"
            hidden = await somebody.service.client.get(path)

    assert after == before
    assert kept == [("A", "TOOL_RESULT"), ("A", "TOOL_ERROR")]
    assert kept_behind_the_end == [*kept, ("A", "TOOL_RESULT")]
    assert "secret-late" not in str(desk.requests())
    assert hidden.status_code == 404


async def test_a_late_result_is_kept_while_the_turn_is_at_work_as_well(stage: Stage) -> None:
    async with a_desk(stage, slow_cashier(stage.ledger)) as desk:
        waiting = await desk.opens(asks(SCAN, call("B", "search")))
        await desk.sends(waiting, "TOOL_RESULT", "A", output="first", wait=0)
        await eventually(lambda: is_started(desk, waiting))
        running = await desk.now(waiting)
        again = await desk.sends(running, "TOOL_RESULT", "A", output="second")
        await desk.is_refused(running, again, 409, "turn_not_blocked")
        kept = await late(desk, running)
        stage.ledger.open_gate()
        done = await desk.rests(running)

    assert (running["status"], kept) == ("RUNNING", [("A", "TOOL_RESULT")])
    assert done["status"] == "COMPLETED"


async def is_started(desk: Desk, turn: Turn) -> bool:
    return "TOOL_STARTED" in await desk.types(turn)


async def test_case_89_an_id_that_the_model_uses_again_is_another_one(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        first = await desk.opens(asks(SCAN), asks(call("A", "scan", parcel="p2")))
        turn = await desk.says("Something else.")
        anew = waiting_for(turn)["callId"]
        old = await desk.sends(turn, "TOOL_RESULT", "A", output="of the first")
        await desk.is_refused(turn, old, 409, "correlation_mismatch")
        done = await desk.delivers(turn, anew, "of the second")
        results = await desk.tool_messages()

    assert (waiting_for(first)["callId"], anew != "A") == ("A", True)
    assert (done["status"], results[-1]["content"]) == ("COMPLETED", "of the second")


async def test_case_107_calls_are_done_one_behind_another_where_one_is_outside(
    stage: Stage,
) -> None:
    calls = asks(
        call("A", "look_up", what="a"), call("B", "scan", parcel="b"), call("C", "pay", amount=3)
    )
    async with a_desk(stage) as desk:
        waiting = await desk.opens(calls)
        entered_before = desk.bank.entered()
        done = await desk.delivers(waiting, "B", "scanned")
        results = await desk.results()

    assert entered_before == ["look_up"]
    assert desk.bank.entered() == ["look_up", "pay"]
    assert done["status"] == "COMPLETED"
    assert results == [("A", "completed"), ("B", "completed"), ("C", "completed")]


async def test_case_108_a_call_that_was_rejected_is_never_handed_over(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(call("A", "gated_scan", parcel="p1")))
        too_early = await desk.sends(waiting, "TOOL_RESULT", "A", output="done already")
        await desk.is_refused(waiting, too_early, 409, "wrong_command")
        listed = await desk.listed("/external-calls")
        done = await desk.rejects(waiting, "A")
        types = await desk.types(done)
        results = await desk.results()

    assert (waiting["status"], listed) == ("WAITING_FOR_APPROVAL", [])
    assert (done["status"], results) == ("COMPLETED", [("A", "rejected")])
    assert not [name for name in types if name.startswith("EXTERNAL_")]


async def test_case_108_a_call_that_was_approved_is_handed_over_then(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        approval = await desk.opens(asks(call("A", "gated_scan", parcel="p1")))
        waiting = await desk.approves(approval, "A")
        done = await desk.delivers(waiting, "A", "scanned")

    assert (approval["status"], waiting["status"]) == ("WAITING_FOR_APPROVAL", "WAITING_FOR_TOOL")
    assert (approval["counters"]["toolCalls"], waiting["counters"]["toolCalls"]) == (0, 1)
    assert done["status"] == "COMPLETED"


LONG = "ü" * SMALL
"""Twice as long in UTF-8."""


async def test_case_109_what_is_no_result_is_refused_and_a_shorter_one_is_taken(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(call("A", "small_scan", parcel="p1")))
        nothing = await desk.sends(waiting, "TOOL_RESULT", "A", output=None)
        await desk.is_refused(waiting, nothing, 422, "payload_invalid")
        missing = await desk.sends(waiting, "TOOL_RESULT", "A")
        await desk.is_refused(waiting, missing, 422, "payload_invalid")
        for output in (LONG, "x" * (SMALL + 1), {"text": LONG}):
            answer = await desk.sends(waiting, "TOOL_RESULT", "A", output=output)
            await desk.is_refused(waiting, answer, 413, "result_too_large")
        done = await desk.delivers(waiting, "A", "x" * SMALL)
        results = await desk.tool_messages()

    assert waiting_for(waiting)["maxResultBytes"] == SMALL
    assert (done["status"], results[0]["content"]) == ("COMPLETED", "x" * SMALL)


async def test_scenario_098_what_is_too_long_is_cut_between_characters_and_says_so(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        for n in range(4):  # so that a character stands across the border, wherever it is
            conversation = f"ses_{n}"
            calls = asks(call("A", "cut_scan", parcel="p1"))
            waiting = await desk.opens(calls, conversation=conversation)
            done = await desk.delivers(waiting, "A", "x" * n + "😀" * SMALL)
            (result,) = await desk.tool_messages(conversation)
            assert (done["status"], result["outcome"]) == ("COMPLETED", "completed")
            kept = result["content"].split("😀")
            assert len(result["content"].encode()) < 4 * SMALL
            assert kept[0] == "x" * n
            assert kept[-1].strip() != "", "nothing says that it was cut"
            assert "�" not in result["content"]


@pytest.mark.parametrize("megabytes", [2, 20])
async def test_scenario_098_a_result_of_megabytes_is_refused_and_the_turn_waits_on(
    stage: Stage, megabytes: int
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN))
        answer = await desk.sends(waiting, "TOOL_RESULT", "A", output="x" * megabytes * 10**6)
        assert answer.status_code == 413, answer.text
        assert await desk.now(waiting) == waiting
        done = await desk.delivers(waiting, "A", "short")

    assert done["status"] == "COMPLETED"


async def test_case_110_an_error_from_outside_is_told_to_the_model(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN, call("B", "look_up", what="b")))
        done = await desk.gives_up(waiting, "A")
        results = await desk.tool_messages()
        types = await desk.types(done)

    assert done["status"] == "COMPLETED"
    assert [(m["callId"], m["outcome"]) for m in results] == [("A", "error"), ("B", "completed")]
    assert "Not there." in results[0]["content"]
    assert types.count("EXTERNAL_TOOL_FAILED") == 1


async def test_a_cancellation_says_at_once_what_it_makes_of_calls_and_says_it_again(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN, call("B", "pay", amount=1)))
        path, key = f"/turns/{waiting['turnId']}/cancel", {"Idempotency-Key": "once"}
        first, repeated, second = [
            await desk.service.client.post(path, headers=headers) for headers in (key, key, {})
        ]

    assert [answer.status_code for answer in (first, repeated, second)] == [200, 200, 200]
    assert repeated.headers["Idempotency-Replayed"] == "true"
    assert repeated.json() == first.json()
    assert second.json()["givenUp"] == first.json()["givenUp"]
    assert first.json()["givenUp"] == [
        {"callId": "A", "toolName": "scan", "outcome": "unknown"},
        {"callId": "B", "toolName": "pay", "outcome": "cancelled"},
    ]


async def test_case_111_a_cancellation_calls_off_what_is_outside(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN, call("B", "pay", amount=1)))
        ended = await desk.cancels(waiting)
        types = await desk.types(ended)
        results = await desk.results()
        interrupted = await desk.listed(f"/turns/{ended['turnId']}/interruptions")
        listed = await desk.listed("/external-calls", status="open")

    assert ended["status"] == "CANCELLED"
    assert types.count("EXTERNAL_TOOL_CANCEL_REQUESTED") == 1
    assert types[-1] == "TURN_CANCELLED"
    assert [row["callId"] for row in interrupted] == ["A", "B"]
    assert [outcome for _, outcome in results] == ["unknown", "cancelled"]
    assert listed == []


async def test_case_112_a_restart_hands_nothing_over_again(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN))
        listed = await desk.listed("/external-calls", status="open")
    async with a_desk(stage) as desk:
        again = await desk.now(waiting)
        listed_again = await desk.listed("/external-calls", status="open")
        done = await desk.delivers(waiting, "A", "scanned")
        types = await desk.types(done)

    assert (again, listed_again) == (waiting, listed)
    assert types.count("EXTERNAL_TOOL_REQUESTED") == 1
    assert done["status"] == "COMPLETED"


async def test_scenario_014_a_call_that_was_given_up_keeps_what_stood_beside_it(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(REASONED)
        done = await desk.says("Forget that.")
        asked, result, message = desk.requests()[-1][-3:]

    assert waiting["status"] == "WAITING_FOR_TOOL"
    assert done["status"] == "COMPLETED"
    assert [c["id"] for c in asked["tool_calls"]] == ["A"]
    assert (result["role"], result["tool_call_id"], message["role"]) == ("tool", "A", "user")


async def test_scenario_061_a_result_for_another_call_or_turn_is_for_nobody(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SCAN))
        other = await desk.opens(asks(call("B", "scan", parcel="b")), conversation="ses_2")
        wrong_call = await desk.sends(waiting, "TOOL_RESULT", "B", output="x")
        wrong_turn = await desk.sends(other, "TOOL_RESULT", "A", output="x")
        nowhere = await desk.sends(waiting | {"turnId": "trn_none"}, "TOOL_RESULT", "A", output="x")
        await desk.is_refused(waiting, wrong_call, 409, "correlation_mismatch")
        await desk.is_refused(other, wrong_turn, 409, "correlation_mismatch")
        await desk.is_refused(other, nowhere, 404, "turn_not_found")
        assert await late(desk, waiting) == []


async def test_an_outside_call_counts_against_the_budget_of_calls(stage: Stage) -> None:
    async with a_desk(stage, limits=Limits(max_tool_calls=1)) as desk:
        waiting = await desk.opens(asks(SCAN, call("B", "look_up", what="b")))
        ended = await desk.delivers(waiting, "A", "scanned")

    assert ended["status"] == "BUDGET_EXCEEDED"
    assert desk.bank.entered() == []


# --- Executors ------------------------------------------------------------------------------------


async def claim(desk: Desk, executor: str, **more: object) -> list[dict[str, Any]]:
    body = {"executor": executor, "limit": 10, "leaseSeconds": 60} | more
    answer = await desk.service.client.post("/external-calls/claim", json=body)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_executors_claim_calls_and_never_get_one_that_another_has(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        turns = [
            await desk.opens(asks(call("A", "scan", parcel=f"p{n}")), conversation=f"ses_{n}")
            for n in range(6)
        ]
        shares = await asyncio.gather(*(claim(desk, f"robot {n}", limit=3) for n in range(4)))
        left = await claim(desk, "robot 9")
        claimed = [item for share in shares for item in share]
        for item in claimed:
            await desk.delivers(item, item["callId"], f"scanned {item['arguments']}")
        ended = [await desk.now(turn) for turn in turns]

    assert sorted(item["turnId"] for item in claimed) == sorted(turn["turnId"] for turn in turns)
    assert {item["idempotencyKey"] for item in claimed} == {f"{t['turnId']}:A" for t in turns}
    assert left == []
    assert {turn["status"] for turn in ended} == {"COMPLETED"}


async def test_a_claim_is_for_named_tools_and_runs_out(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        turn = await desk.opens(asks(call("A", "small_scan", parcel="p1")))
        none = await claim(desk, "robot", tools=["scan"])
        first = await claim(desk, "robot", tools=["small_scan", "scan"])
        await desk.rows("UPDATE external_calls SET claimed_until = clock_timestamp()")
        second = await claim(desk, "another robot")
        done = await desk.delivers(turn, "A", "scanned")
        none_left = await claim(desk, "robot")

    assert (none, none_left) == ([], [])
    assert [item["toolName"] for item in (*first, *second)] == ["small_scan", "small_scan"]
    assert done["status"] == "COMPLETED"
