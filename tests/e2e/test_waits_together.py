"""`open_waits: together`: all calls of an answer that need somebody are open at once (C28)."""

from collections.abc import Awaitable, Callable
from itertools import permutations

import pytest

from tests.e2e.conftest import Stage
from tests.support.polling import eventually
from tests.support.story import MODEL
from tests.support.waits import DONE, Desk, Turn, a_desk, asks, call
from tests.support.waits_cashier import slow_cashier

MIXED = (
    call("A", "gated_pay", amount=7),
    call("B", "scan", parcel="b"),
    call("C", "request_user_input", message="Your name?"),
)
MIX = asks(*MIXED)
SIX = asks(*(call(call_id, "scan", parcel=call_id) for call_id in "ABCDEF"))
THREE = asks(*(call(call_id, "gated_pay", amount=n) for n, call_id in enumerate("ABC", 1)))


def waits(turn: Turn) -> list[tuple[str, str]]:
    """What is open: call and kind, in declared order."""
    return [(wait["callId"], wait["suspensionType"]) for wait in turn["waits"]]


async def inbox(desk: Desk) -> list[str]:
    """The calls that anybody of the tenant waits with, oldest first."""
    items = await desk.listed("/waits", **{"for": "tenant", "limit": 100})
    return [item["wait"]["callId"] for item in items]


async def test_everything_that_needs_somebody_opens_at_once_and_the_rest_is_done_meanwhile(
    stage: Stage,
) -> None:
    calls = asks(*MIXED, call("D", "look_up", what="d"), call("E", "pay", amount=1))
    async with a_desk(stage, open_waits="together") as desk:
        turn = await desk.opens(calls)
        listed = await inbox(desk)
        done = await desk.completed(turn)

    assert waits(turn) == [("A", "TOOL_APPROVAL"), ("B", "EXTERNAL_TOOL"), ("C", "USER_INPUT")]
    assert (turn["status"], turn["suspension"]) == ("WAITING_FOR_APPROVAL", turn["waits"][0])
    assert sorted(listed) == ["A", "B", "C"]
    assert done == ["D", "E"]
    assert sorted(desk.bank.entered()) == ["look_up", "pay"]


Answer = Callable[[Desk, Turn], Awaitable[Turn]]
ANSWERS: dict[str, Answer] = {
    "A": lambda desk, turn: desk.tells(turn, "A", "Kim"),
    "B": lambda desk, turn: desk.tells(turn, "B", "41"),
    "C": lambda desk, turn: desk.approves(turn, "C"),
}


@pytest.mark.parametrize("order", list(permutations("ABC")), ids="".join)
async def test_scenario_047_each_answer_lands_on_its_own_call_in_whatever_order(
    stage: Stage, order: tuple[str, ...]
) -> None:
    calls = asks(
        call("A", "request_user_input", message="name?"),
        call("B", "request_user_input", message="age?"),
        call("C", "gated_pay", amount=7),
    )
    async with a_desk(stage, open_waits="together") as desk:
        turn = await desk.opens(calls)
        wrong = await desk.sends(turn, "USER_INPUT", "C", text="yes")
        await desk.is_refused(turn, wrong, 409, "wrong_command")
        unnamed = await desk.sends(turn, "USER_INPUT", text="Kim")
        await desk.is_refused(turn, unnamed, 422, "payload_invalid")
    for call_id in order:
        async with a_desk(stage, open_waits="together") as desk:
            turn = await ANSWERS[call_id](desk, turn)
    async with a_desk(stage, open_waits="together") as desk:
        sent = desk.requests()
        results = await desk.tool_messages()

    assert (turn["status"], turn["waits"]) == ("COMPLETED", [])
    assert [m["callId"] for m in results] == ["A", "B", "C"]
    assert "Kim" in results[0]["content"]
    assert "41" in results[1]["content"]
    assert results[2]["content"] == "paid 7, note none"
    assert len(sent) == 2
    assert desk.bank.paid() == [("C", 7)]


async def test_scenario_022_six_calls_outside_are_asked_for_once_and_waited_for_together(
    stage: Stage,
) -> None:
    async with a_desk(stage, open_waits="together") as desk:
        turn = await desk.opens(SIX)
        for n, call_id in enumerate("ABCDEF", 1):
            turn = await desk.delivers(turn, call_id, f"{call_id} is scanned")
            if call_id == "C":
                again = await desk.sends(turn, "TOOL_RESULT", "C", output="again")
                await desk.is_refused(turn, again, 409, "correlation_mismatch")
            assert [found for found, _ in waits(turn)] == list("ABCDEF"[n:])
            assert len(desk.requests()) == (1 if n < 6 else 2)
        types = await desk.types(turn)
        results = await desk.results()

    assert turn["status"] == "COMPLETED"
    assert types.count("EXTERNAL_TOOL_REQUESTED") == 6
    assert types.count("EXTERNAL_TOOL_CANCEL_REQUESTED") == 0
    assert results == [(call_id, "completed") for call_id in "ABCDEF"]


async def test_scenario_046_what_is_not_decided_yet_stays_open_over_every_restart(
    stage: Stage,
) -> None:
    async with a_desk(stage, open_waits="together") as desk:
        turn = await desk.opens(THREE)
        assert [found for found, _ in waits(turn)] == ["A", "B", "C"]
        turn = await desk.approves(turn, "A")
    async with a_desk(stage, open_waits="together") as desk:
        assert await desk.now(turn) == turn
        assert [found for found, _ in waits(turn)] == ["B", "C"]
        turn = await desk.rejects(turn, "B")
        assert len(desk.requests()) == 1
    async with a_desk(stage, open_waits="together") as desk:
        assert await desk.now(turn) == turn
        assert ([found for found, _ in waits(turn)], await inbox(desk)) == (["C"], ["C"])
        done = await desk.approves(turn, "C")
        results = await desk.results()

    assert done["status"] == "COMPLETED"
    assert results == [("A", "completed"), ("B", "rejected"), ("C", "completed")]
    assert desk.bank.paid() == [("A", 1), ("C", 3)]


@pytest.mark.parametrize("how", ["message", "replan"])
async def test_scenario_050_a_message_closes_everything_that_is_open(
    stage: Stage, how: str
) -> None:
    async with a_desk(stage, open_waits="together") as desk:
        waiting = await desk.opens(MIX, asks(call("D", "gated_pay", amount=1)))
        if how == "message":
            turn = await desk.says("Stop, do something else.")
        else:
            turn = await desk.replans(waiting, "Stop, do something else.")
        left = await inbox(desk)
        events = await desk.events(turn)
        for command, call_id, more in LATE:
            answer = await desk.sends(turn, command, call_id, **more)
            await desk.is_refused(turn, answer, 409, "correlation_mismatch")
        results = await desk.results()
        opened = await desk.listed("/external-calls", status="open")

    assert (turn["turnId"], waits(turn)) == (waiting["turnId"], [("D", "TOOL_APPROVAL")])
    assert (left, opened) == (["D"], [])
    assert [call_id for call_id, _ in results] == ["A", "B", "C"]
    assert not {outcome for _, outcome in results} & {"completed", "rejected"}
    called_off = [e["data"]["callId"] for e in events if "CANCEL_REQUESTED" in e["type"]]
    assert called_off == ["B"]
    assert desk.bank.entered() == []


LATE: list[tuple[str, str, dict[str, object]]] = [
    ("APPROVE_TOOL", "A", {}),
    ("TOOL_RESULT", "B", {"output": "late"}),
]


async def test_an_answer_is_taken_while_a_call_beside_it_still_runs(stage: Stage) -> None:
    async with a_desk(stage, slow_cashier(stage.ledger, open_waits="together")) as desk:
        sent = await opened_with_one_in_flight(desk)
        while_running = await desk.now(sent)
        rejected = await desk.sends(sent, "REJECT_TOOL", "A", reason="No.", wait=0)
        stage.ledger.open_gate()
        done = await desk.rests(sent)
        results = await desk.results()

    assert (while_running["status"], waits(while_running)) == (
        "RUNNING",
        [("A", "TOOL_APPROVAL")],
    )
    assert rejected.status_code == 202, rejected.text
    assert done["status"] == "COMPLETED"
    assert results == [("A", "rejected"), ("B", "completed")]


async def test_a_pause_keeps_what_is_open_and_the_turn_waits_on_behind_it(stage: Stage) -> None:
    async with a_desk(stage, slow_cashier(stage.ledger, open_waits="together")) as desk:
        sent = await opened_with_one_in_flight(desk)
        pausing = await desk.service.client.post(f"/turns/{sent['turnId']}/pause")
        stage.ledger.open_gate()
        paused = await desk.rests(sent)
        resumed = await desk.service.resume(sent["turnId"], {"command": "RESUME"})
        waiting = await desk.rests(sent)
        done = await desk.approves(waiting, "A")
        results = await desk.results()

    assert pausing.status_code in {200, 202}
    assert paused["status"] == "PAUSED"
    assert ("A", "TOOL_APPROVAL") in waits(paused)
    assert resumed.status_code == 202, resumed.text
    assert (waiting["status"], waits(waiting)) == (
        "WAITING_FOR_APPROVAL",
        [("A", "TOOL_APPROVAL")],
    )
    assert (done["status"], results) == ("COMPLETED", [("A", "completed"), ("B", "completed")])


async def opened_with_one_in_flight(desk: Desk) -> Turn:
    """A turn whose first call waits for an approval while its second one runs."""
    calls = asks(call("A", "gated_pay", amount=7), call("B", "search"))
    desk.stage.provider.script(MODEL, [calls, DONE])
    sent = await desk.service.send("ses_1", "Go.", wait=0, agentId="cashier")

    async def is_open() -> bool:
        turn = await desk.now(sent)
        return bool(turn["waits"]) and "TOOL_STARTED" in await desk.types(turn)

    await eventually(is_open)
    return sent


async def test_a_text_answers_no_question_while_something_else_is_open(stage: Stage) -> None:
    async with a_desk(stage, open_waits="together") as desk:
        both = asks(call("A", "request_user_input", message="name?"), call("B", "scan", parcel="b"))
        waiting = await desk.opens(both)
        done = await desk.says("Kim")
        results = await desk.results()
        alone = await desk.opens(
            asks(call("C", "request_user_input", message="name?")), conversation="ses_2"
        )
        answered = await desk.says("Kim", conversation="ses_2")
        of_alone = await desk.results("ses_2")

    assert (done["turnId"], done["status"]) == (waiting["turnId"], "COMPLETED")
    assert results[0] == ("A", "superseded")
    assert (answered["turnId"], of_alone) == (alone["turnId"], [("C", "completed")])
