"""Waits whose time is over: late answers are refused, and what happens then is what was said.

Commands are late at a desk where it is later. The sweeper goes by the database's clock, so where
nobody comes at all the waits are short ones.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from app.agents import Ask, Limits, WaitPolicy
from app.tools import tool
from app.turn.agent import OnExpiry
from tests.e2e.conftest import Stage
from tests.support.ledger import Bank
from tests.support.polling import eventually
from tests.support.waits import Desk, Turn, a_desk, a_later_desk, asks, call, waiting_for
from tests.support.waits_cashier import cashier

HOUR = timedelta(hours=1)
SHORT = timedelta(milliseconds=300)
ON_EXPIRY: list[OnExpiry] = ["keep", "answer_expired", "fail", "cancel"]
ENDS = {"answer_expired": "COMPLETED", "fail": "FAILED", "cancel": "CANCELLED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of wait, and how it is answered."""

    call: dict[str, object]
    command: str
    answer: dict[str, object]


KINDS = {
    "approval": Kind(call=call("A", "gated_pay", amount=7), command="APPROVE_TOOL", answer={}),
    "form": Kind(
        call=call("A", "request_user_input", message="?", form="address"),
        command="USER_INPUT",
        answer={"data": {"city": "Oslo"}},
    ),
    "tool's form": Kind(
        call=call("A", "ship", parcel="p"), command="USER_INPUT", answer={"data": {"city": "Oslo"}}
    ),
    "external": Kind(
        call=call("A", "scan", parcel="p"), command="TOOL_RESULT", answer={"output": "late"}
    ),
}
BEHIND = call("B", "look_up", what="b")


def within(timeout: timedelta, on_expiry: OnExpiry) -> dict[str, Any]:
    """The option of an agent."""
    return {"wait": WaitPolicy(timeout=timeout, on_expiry=on_expiry)}


async def answers(desk: Desk, turn: Turn, kind: Kind) -> httpx.Response:
    return await desk.sends(turn, kind.command, "A", **kind.answer)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
async def test_case_119_a_late_answer_is_refused_and_what_is_kept_waits_on(
    stage: Stage, kind: Kind
) -> None:
    options = within(HOUR, "keep")
    async with a_desk(stage, **options) as desk:
        waiting = await desk.opens(asks(kind.call, BEHIND))
    async with a_later_desk(stage, HOUR, **options) as desk:
        late = await desk.now(waiting)
        refused = await answers(desk, late, kind)
        await desk.is_refused(late, refused, 409, "wait_expired")
    async with a_desk(stage, **options) as desk:
        again = await desk.now(waiting)

    wait = waiting_for(waiting)
    assert (wait["timeoutMillis"], wait["onExpiry"]) == (3_600_000, "keep")
    assert wait["expiresAt"] > wait["requestedAt"]
    assert again["status"] == waiting["status"]
    offered = {a["command"]: (a["enabled"], a.get("reason")) for a in late["actions"]}
    assert offered[kind.command] == (False, "wait_expired")
    assert offered["MESSAGE"] == (True, None)
    assert [deed.tool for deed in desk.bank.payments()] == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("on_expiry", ["answer_expired", "fail", "cancel"])
async def test_case_119_a_late_answer_brings_what_the_expiry_brings_and_nothing_of_its_own(
    stage: Stage, kind: Kind, on_expiry: OnExpiry
) -> None:
    options = within(HOUR, on_expiry)
    async with a_desk(stage, **options) as desk:
        waiting = await desk.opens(asks(kind.call, BEHIND))
    async with a_later_desk(stage, HOUR, **options) as desk:
        refused = await answers(desk, waiting, kind)
        ended = await desk.rests(waiting)
        again = await answers(desk, ended, kind)
        types = await desk.types(ended)
        results = await desk.results()

    assert (refused.status_code, refused.json()["code"]) == (409, "wait_expired")
    assert (again.status_code, again.json()["code"]) == (409, "turn_terminal")
    check_the_end(on_expiry, ended, types, results)


def check_the_end(
    on_expiry: OnExpiry, ended: Turn, types: list[str], results: list[tuple[str, str]]
) -> None:
    """What the expiry of call A's wait came to, another call standing behind it."""
    assert (ended["status"], ended["waits"]) == (ENDS[on_expiry], [])
    assert types.count("WAIT_EXPIRED") == 1
    assert not {"TOOL_APPROVAL_DECIDED", "TOOL_INPUT_RECEIVED"} & set(types)
    called_off = int("EXTERNAL_TOOL_REQUESTED" in types)
    assert types.count("EXTERNAL_TOOL_CANCEL_REQUESTED") == called_off
    assert [call_id for call_id, _ in results] == ["A", "B"]
    if on_expiry == "answer_expired":
        assert results == [("A", "expired"), ("B", "completed")]
    else:
        # Beside a tool that runs and then asks, the other one has run already.
        assert results[1][1] == ("completed" if "TOOL_STARTED" in types else "cancelled")
        assert types[-1] == f"TURN_{ENDS[on_expiry]}"


@pytest.mark.parametrize("on_expiry", ON_EXPIRY)
@pytest.mark.parametrize("how", ["message", "replan"])
async def test_case_120_a_message_goes_on_whether_or_not_the_time_is_over(
    stage: Stage, on_expiry: OnExpiry, how: str
) -> None:
    options = within(HOUR, on_expiry)
    async with a_desk(stage, **options) as desk:
        waiting = await desk.opens(asks(KINDS["approval"].call))
    async with a_later_desk(stage, 2 * HOUR, **options) as desk:
        if how == "message":
            done = await desk.says("Something else.")
        else:
            done = await desk.replans(waiting, "Something else.")
        results = await desk.results()

    assert (done["turnId"], done["status"]) == (waiting["turnId"], "COMPLETED")
    assert results == [("A", "superseded")]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("on_expiry", ON_EXPIRY)
async def test_case_121_a_wait_is_over_in_time_though_nobody_comes(
    stage: Stage, kind: Kind, on_expiry: OnExpiry
) -> None:
    async with a_desk(stage, **within(SHORT, on_expiry)) as desk:
        sent = await desk.opens(asks(kind.call, BEHIND))
        await eventually(lambda: has_expired(desk, sent))
        turn = await desk.rests(sent)
        types = await desk.types(turn)
        results = await desk.results()
        if on_expiry == "keep":
            late = await answers(desk, turn, kind)
            await desk.is_refused(turn, late, 409, "wait_expired")

    assert desk.bank.payments() == []
    if on_expiry == "keep":
        assert (waiting_for(turn)["isExpired"], types.count("WAIT_EXPIRED")) == (True, 1)
        assert results == []
    else:
        check_the_end(on_expiry, turn, types, results)


async def has_expired(desk: Desk, turn: Turn) -> bool:
    return "WAIT_EXPIRED" in await desk.types(turn)


@pytest.mark.parametrize("on_expiry", ON_EXPIRY)
async def test_case_121_a_plain_question_is_over_in_time_as_well(
    stage: Stage, on_expiry: OnExpiry
) -> None:
    @tool
    async def ask() -> str:
        """Ask where to go."""
        raise Ask("Where to?")

    whole = cashier(Bank(stage.ledger.folder), **within(SHORT, on_expiry))
    agent = replace(whole, tools=(*whole.tools, ask))
    async with a_desk(stage, agent) as desk:
        sent = await desk.opens(asks(call("A", "ask")), {"text": "never"})
        await eventually(lambda: has_expired(desk, sent))
        turn = await desk.rests(sent)
        if on_expiry == "keep":
            late = await desk.sends(turn, "USER_INPUT", text="Tokyo")
            await desk.is_refused(turn, late, 409, "wait_expired")
            answered = await desk.says("Tokyo")
            assert answered["status"] == "COMPLETED"

    expected = {"keep": "WAITING_FOR_USER"} | ENDS
    assert turn["status"] == expected[on_expiry]


@pytest.mark.parametrize(("counts", "end"), [(True, "BUDGET_EXCEEDED"), (False, "COMPLETED")])
async def test_case_117_a_time_budget_counts_the_wait_for_an_approval_unless_it_says_otherwise(
    stage: Stage, *, counts: bool, end: str
) -> None:
    limits = Limits(max_duration=timedelta(minutes=10), count_waiting=counts)
    async with a_desk(stage, limits=limits) as desk:
        waiting = await desk.opens(asks(KINDS["approval"].call))
    async with a_later_desk(stage, timedelta(minutes=10), limits=limits) as desk:
        ended = await desk.approves(waiting, "A")
        results = await desk.results()

    assert ended["status"] == end
    assert results[0][1] == ("completed" if end == "COMPLETED" else "cancelled")


async def test_scenario_053_an_approval_without_a_time_waits_for_as_long_as_it_takes(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(KINDS["approval"].call))
    async with a_later_desk(stage, timedelta(minutes=31)) as desk:
        soon = await desk.now(waiting)
    async with a_later_desk(stage, timedelta(hours=25)) as desk:
        done = await desk.approves(waiting, "A")
        again = await desk.sends(done, "APPROVE_TOOL", "A")
        await desk.is_refused(done, again, 409, "turn_terminal")

    assert soon == waiting
    assert done["status"] == "COMPLETED"
    assert desk.bank.paid() == [("A", 7)]


async def test_scenario_061_what_was_not_done_in_time_is_told_and_comes_too_late_then(
    stage: Stage,
) -> None:
    options = within(SHORT, "answer_expired")
    async with a_desk(stage, **options) as desk:
        sent = await desk.opens(asks(KINDS["external"].call))
        await eventually(lambda: has_expired(desk, sent))
        done = await desk.rests(sent)
        for _ in range(2):
            late = await desk.sends(done, "TOOL_RESULT", "A", output="secret-late")
            await desk.is_refused(done, late, 409, "turn_terminal")
        kept = await desk.listed(f"/turns/{done['turnId']}/late-results")
        results = await desk.results()
        audited = await desk.audited(done)

    assert (done["status"], results) == ("COMPLETED", [("A", "expired")])
    assert len(kept) == 2
    assert ("TOOL_RESULT", "refused", "A") in audited
    assert "secret-late" not in str(desk.requests())


async def test_of_several_waits_only_the_one_whose_time_is_over_ends(stage: Stage) -> None:
    @tool(needs_approval=True, wait=WaitPolicy(timeout=SHORT, on_expiry="answer_expired"))
    async def hurry() -> str:
        """Do it now or never."""
        return "in time"

    whole = cashier(Bank(stage.ledger.folder), open_waits="together")
    agent = replace(whole, tools=(*whole.tools, hurry))
    async with a_desk(stage, agent) as desk:
        sent = await desk.opens(asks(call("H", "hurry"), KINDS["approval"].call))
        await eventually(lambda: has_expired(desk, sent))
        turn = await desk.rests(sent)
        late = await desk.sends(turn, "APPROVE_TOOL", "H")
        await desk.is_refused(turn, late, 409, "correlation_mismatch")
        done = await desk.approves(turn, "A")
        results = await desk.results()

    assert waiting_for(turn)["callId"] == "A"
    assert (done["status"], results) == ("COMPLETED", [("H", "expired"), ("A", "completed")])
