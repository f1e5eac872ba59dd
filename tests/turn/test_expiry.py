"""Waits whose time is over: what the clock does, and what a late answer does not (T89 to T91)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.turn import inputs as i
from app.turn.agent import Agent, OnExpiry, WaitPolicy
from app.turn.decide import decide_request
from app.turn.errors import Rejected
from app.turn.events import TurnResumed, WaitExpired
from app.turn.evolve import advance
from app.turn.states import Failed
from app.turn.status import Status
from app.turn.transcript import NoticeMessage, Outcome, ToolResult
from tests.support.calls_that_wait import asked_for
from tests.support.turns import (
    QUESTION,
    REFUND,
    SHIP,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
)

ALL: list[OnExpiry] = ["keep", "answer_expired", "fail", "cancel"]


def in_an_hour(on_expiry: OnExpiry) -> Agent:
    return an_agent(wait=WaitPolicy(timeout=timedelta(hours=1), on_expiry=on_expiry))


def an_approval_waits(on_expiry: OnExpiry) -> Told:
    return asked_for(a_call("A", REFUND), a_call("B"), agent=in_an_hour(on_expiry))


def a_question_waits(on_expiry: OnExpiry) -> Told:
    return asked_for(a_call("A"), agent=in_an_hour(on_expiry)).finished("A", question="where to?")


def results(told: Told) -> list[tuple[str, Outcome]]:
    said = sorted(told.transcript.items())
    return [(m.call_id, m.outcome) for _, m in said if isinstance(m, ToolResult)]


# --- Before and at the end of the time -----------------------------------------------------------


@pytest.mark.parametrize("told", [an_approval_waits("fail"), a_question_waits("fail")])
def test_nothing_happens_before_the_time_is_over(told: Told) -> None:
    assert told.turn.expires_at == told.at + timedelta(hours=1)

    assert told.time_passed(minutes=59).last == ()


def test_the_time_is_over_when_it_is_reached() -> None:
    assert an_approval_waits("keep").time_passed(hours=1).types == ["WAIT_EXPIRED"]


def test_a_wait_without_a_time_never_ends_by_itself() -> None:
    told = asked_for(a_call("A", REFUND))

    assert told.turn.expires_at is None
    assert told.time_passed(days=10_000).last == ()


def test_a_tool_may_have_a_time_of_its_own() -> None:
    ship = replace(SHIP, wait=WaitPolicy(timeout=timedelta(seconds=9), on_expiry="fail"))
    agent = replace(in_an_hour("keep"), tools=(ship,))

    assert asked_for(a_call("A", SHIP), agent=agent).time_passed(seconds=9).turn.is_terminal


# --- What it does (T89, cases 119 and 121) -------------------------------------------------------


def test_case_119_a_wait_that_is_kept_is_marked_once_and_waits_on() -> None:
    told = an_approval_waits("keep").time_passed(hours=1)

    assert told.last == (WaitExpired(call_id=told.turn.open_calls[0].call_id, on_expiry="keep"),)
    assert (told.turn.status, told.turn.expires_at) == (Status.WAITING_FOR_APPROVAL, None)
    assert told.time_passed(hours=1).last == ()


def test_case_121_the_call_is_answered_as_expired_and_the_turn_goes_on_without_a_client() -> None:
    told = an_approval_waits("answer_expired").time_passed(hours=1)

    assert told.types == ["WAIT_EXPIRED", "TOOL_INTERRUPTED", "TURN_RESUMED"]
    resumed = told.last[-1]
    assert isinstance(resumed, TurnResumed)
    assert (resumed.command_type, resumed.correlation_id) == ("EXPIRY", "A")
    assert results(told) == [("A", Outcome.EXPIRED)]
    assert told.begun().types == ["STEP_STARTED", "TOOL_STARTED"]


def test_what_is_outside_is_told_to_stop_and_may_have_been_done() -> None:
    told = asked_for(a_call("A", SHIP), agent=in_an_hour("answer_expired")).time_passed(hours=1)

    assert told.types == [
        "WAIT_EXPIRED",
        "TOOL_INTERRUPTED",
        "EXTERNAL_TOOL_CANCEL_REQUESTED",
        "TURN_RESUMED",
    ]
    result = told.transcript[2]
    assert isinstance(result, ToolResult)
    assert "It may or may not have taken effect" in result.content


@pytest.mark.parametrize(
    ("on_expiry", "status"), [("fail", Status.FAILED), ("cancel", Status.CANCELLED)]
)
def test_case_119_the_turn_may_end_with_it_and_its_history_is_closed(
    on_expiry: OnExpiry, status: Status
) -> None:
    told = an_approval_waits(on_expiry).time_passed(hours=1)

    assert told.turn.status is status
    assert told.types[:3] == ["WAIT_EXPIRED", "TOOL_INTERRUPTED", "TOOL_INTERRUPTED"]
    assert results(told) == [("A", Outcome.CANCELLED), ("B", Outcome.CANCELLED)]
    if status is Status.FAILED:
        assert told.turn.state == Failed(reason="wait_expired")


def test_a_plain_question_is_answered_by_a_notice() -> None:
    told = a_question_waits("answer_expired").time_passed(hours=1)

    assert told.types == ["WAIT_EXPIRED", "MESSAGE_ADDED", "TURN_RESUMED"]
    notice = told.transcript[max(told.transcript)]
    assert isinstance(notice, NoticeMessage)
    assert notice.cause == "question_expired"
    assert not told.turn.is_repaired
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


@pytest.mark.parametrize(
    ("on_expiry", "status"),
    [
        ("keep", Status.WAITING_FOR_USER),
        ("fail", Status.FAILED),
        ("cancel", Status.CANCELLED),
    ],
)
def test_a_plain_question_expires_like_any_wait(on_expiry: OnExpiry, status: Status) -> None:
    told = a_question_waits(on_expiry).time_passed(hours=1)

    assert told.types[0] == "WAIT_EXPIRED"
    assert told.turn.status is status
    assert told.time_passed(hours=1).last == ()


def test_time_passes_without_the_agent_too() -> None:
    told = an_approval_waits("answer_expired").later(hours=1)

    events = decide_request(told.turn, i.TimePassed(), at=told.at)

    assert advance(told.turn, events).status is Status.RUNNING


# --- What comes too late (T90, case 120) ---------------------------------------------------------


@pytest.mark.parametrize("on_expiry", ALL)
def test_case_119_a_late_answer_is_refused_whatever_the_expiry_does(on_expiry: OnExpiry) -> None:
    told = an_approval_waits(on_expiry).later(hours=1)
    before = told.turn

    for answer in (told.approved, told.rejected):
        with pytest.raises(Rejected) as refusal:
            answer("A")
        assert (refusal.value.code, told.turn) == ("wait_expired", before)


def test_a_late_answer_is_refused_also_when_the_expiry_has_been_dealt_with() -> None:
    told = an_approval_waits("keep").time_passed(hours=1)
    told.at -= timedelta(minutes=5)  # another process's clock may be behind

    with pytest.raises(Rejected) as refusal:
        told.approved("A")

    assert refusal.value.code == "wait_expired"


def test_a_late_answer_to_a_plain_question_is_refused_and_a_message_is_not() -> None:
    told = a_question_waits("keep").later(hours=1)

    with pytest.raises(Rejected) as refusal:
        told.said("Tokyo")

    assert refusal.value.code == "wait_expired"
    assert told.posted("Tokyo").types == ["MESSAGE_ADDED", "TURN_RESUMED"]


@pytest.mark.parametrize("on_expiry", ALL)
def test_case_120_a_message_ignores_the_expiry(on_expiry: OnExpiry) -> None:
    told = an_approval_waits(on_expiry).later(hours=1)
    told.copy().tell(i.Replan(message=a_message("no", "m3")))
    told.copy().cancelled()

    assert told.posted("no").types == [
        "TOOL_INTERRUPTED",
        "TOOL_INTERRUPTED",
        "MESSAGE_ADDED",
        "TURN_RESUMED",
    ]


def test_words_still_answer_a_question_of_the_model_whose_time_is_over() -> None:
    told = asked_for(a_call("A", QUESTION), agent=in_an_hour("keep")).time_passed(hours=1)

    assert told.posted("Tokyo").types == ["TOOL_INPUT_RECEIVED", "TOOL_COMPLETED", "TURN_RESUMED"]


# --- While other calls run (C28) -----------------------------------------------------------------


def one_runs_while_another_waits(on_expiry: OnExpiry) -> Told:
    agent = replace(in_an_hour(on_expiry), open_waits="together")
    return asked_for(a_call("A", SHIP), a_call("B", WRITES), agent=agent)


@pytest.mark.parametrize(
    ("on_expiry", "types", "status"),
    [
        ("keep", ["WAIT_EXPIRED"], Status.WAITING_FOR_TOOL),
        ("fail", ["WAIT_EXPIRED"], Status.FAILED),
        ("cancel", ["WAIT_EXPIRED", "CANCELLATION_REQUESTED"], Status.CANCELLED),
        (
            "answer_expired",
            ["WAIT_EXPIRED", "TOOL_INTERRUPTED", "EXTERNAL_TOOL_CANCEL_REQUESTED"],
            Status.RUNNING,
        ),
    ],
)
def test_a_tool_in_flight_is_let_end_and_its_result_kept(
    on_expiry: OnExpiry, types: list[str], status: Status
) -> None:
    told = one_runs_while_another_waits(on_expiry).time_passed(hours=1)
    assert (told.types, told.turn.status) == (types, Status.RUNNING)

    told.finished("B")

    assert told.turn.status is status
    assert ("B", Outcome.COMPLETED) in results(told)
    if status is Status.FAILED:
        assert told.turn.state == Failed(reason="wait_expired")


def test_a_worker_that_dies_while_the_turn_is_about_to_fail_does_not_save_it() -> None:
    told = one_runs_while_another_waits("fail").time_passed(hours=1).lost()

    assert told.turn.state == Failed(reason="wait_expired")


def test_a_paused_turn_whose_wait_is_over_ends_or_stays_paused_as_the_policy_says() -> None:
    ended = one_runs_while_another_waits("fail").paused().finished("B").time_passed(hours=1)
    stays = one_runs_while_another_waits("answer_expired").paused().finished("B")

    assert ended.turn.status is Status.FAILED
    assert stays.time_passed(hours=1).turn.status is Status.PAUSED
    assert stays.resumed().begun().types == ["STEP_STARTED", "MODEL_STARTED"]
