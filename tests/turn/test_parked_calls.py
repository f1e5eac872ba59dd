"""A person is asked what became of a call whose end nobody knows (`park`, case 63)."""

from datetime import timedelta
from typing import Literal

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import WaitPolicy
from app.turn.errors import CorrelationMismatch, ResultTooLarge, WrongCommand
from app.turn.interruption import WORDS
from app.turn.states import RunningTools
from app.turn.status import Status
from app.turn.transcript import InterruptionReason, Outcome
from app.turn.waits import ApprovalWait
from tests.support.calls_that_wait import asked_for, together
from tests.support.lost import begun_again, results, rules
from tests.support.turns import (
    IDEMPOTENT,
    REFUND,
    WIRE,
    Told,
    a_call,
    a_message,
    an_agent,
)


def parked(*, wait: WaitPolicy | None = None) -> Told:
    return asked_for(a_call("A", WIRE), a_call("B"), agent=an_agent(wait=wait)).lost()


def test_case_63_a_person_is_asked_what_became_of_the_call() -> None:
    told = parked()

    assert told.turn.status is Status.WAITING_FOR_APPROVAL
    (call,) = told.turn.waiting_calls
    assert isinstance(call.wait, ApprovalWait)
    assert (call.wait.stage, call.wait.attempt, call.wait.content) == ("recovery", 1, "{}")
    assert "TOOL_APPROVAL_REQUESTED" in told.types


def test_case_63_it_is_done_and_this_came_of_it() -> None:
    told = parked().gave("A", '"wired"')

    (kept,) = [event for event in told.last if isinstance(event, e.ToolCompleted)]
    assert (kept.result.content, kept.known_by) == ('"wired"', "person")
    assert told.begun().types[-1] == "TOOL_STARTED"
    assert begun_again(told) == {"B": 2}


def test_case_63_it_is_not_done_so_it_is_run_as_the_next_attempt() -> None:
    told = parked().approved("A").begun()

    assert begun_again(told) == {"A": 2}
    told.finished("A").finished("B")
    assert results(told) == {"A": Outcome.COMPLETED, "B": Outcome.COMPLETED}


def test_case_63_nobody_can_say_so_it_is_given_up() -> None:
    told = parked().rejected("A", "the bank is closed")

    (given_up,) = [event for event in told.last if isinstance(event, e.ToolInterrupted)]
    assert given_up.result.outcome is Outcome.UNKNOWN
    assert given_up.reason is InterruptionReason.GIVEN_UP
    assert given_up.result.content.startswith(WORDS[Outcome.UNKNOWN])
    assert given_up.result.content.endswith("The reason given: the bank is closed")


def test_a_run_that_a_person_has_allowed_and_that_is_lost_is_asked_about_anew() -> None:
    told = parked()
    (before,) = told.turn.waiting_calls
    told.approved("A").begun().lost()
    (now,) = told.turn.waiting_calls

    assert isinstance(before.wait, ApprovalWait)
    assert isinstance(now.wait, ApprovalWait)
    assert now.wait.attempt == 2
    with pytest.raises(CorrelationMismatch):
        told.approved("A", before.wait.fingerprint)
    assert begun_again(told.approved("A", now.wait.fingerprint).begun()) == {"A": 3}


def test_an_error_is_no_answer_to_what_became_of_a_call() -> None:
    with pytest.raises(WrongCommand):
        parked().gave_error("A")


def test_an_approval_that_nothing_has_begun_for_takes_no_result() -> None:
    told = asked_for(a_call("A", REFUND))

    with pytest.raises(WrongCommand):
        told.gave("A")


def test_a_result_that_is_too_long_leaves_the_call_waiting() -> None:
    told = parked()

    with pytest.raises(ResultTooLarge):
        told.gave("A", "x" * (WIRE.max_result_bytes + 1))
    assert told.turn.status is Status.WAITING_FOR_APPROVAL


@pytest.mark.parametrize("how", ["message", "replan", "cancel"])
def test_giving_up_a_parked_call_says_that_its_end_is_unknown(
    how: Literal["message", "replan", "cancel"],
) -> None:
    told = parked()
    match how:
        case "message":
            told.posted()
        case "replan":
            told.tell(i.Replan(message=a_message("no", "m3")))
        case "cancel":
            told.cancelled()

    assert results(told)["A"] is Outcome.UNKNOWN


def test_a_parked_call_that_nobody_speaks_of_in_time_says_so() -> None:
    policy = WaitPolicy(timeout=timedelta(hours=1), on_expiry="answer_expired")
    told = parked(wait=policy).time_passed(hours=2)

    assert results(told)["A"] is Outcome.EXPIRED


def test_a_call_of_others_is_parked_behind_what_runs_and_asked_about_when_it_has_ended() -> None:
    told = asked_for(a_call("A"), a_call("B", WIRE)).lost()

    assert begun_again(told) == {"A": 2}
    told.finished("A")
    assert [call.call_id for call in told.turn.waiting_calls] == ["B"]


def test_a_parked_call_is_no_lost_one_when_the_worker_of_another_dies() -> None:
    told = together(a_call("A", WIRE), a_call("B", IDEMPOTENT)).lost()
    assert isinstance(told.turn.state, RunningTools)

    told.lost()

    assert rules(told) == {"B": "rerun_idempotent"}
    assert [call.call_id for call in told.turn.waiting_calls] == ["A"]


def test_without_the_arguments_to_show_nobody_is_asked() -> None:
    told = asked_for(a_call("A", WIRE))

    told.tell(i.StepLost(attempt_id=told.attempt, next_attempt_id=told.draw()))

    assert rules(told) == {"A": "report"}


def test_a_parked_call_of_a_paused_turn_is_asked_about_once_it_goes_on() -> None:
    told = asked_for(a_call("A", WIRE)).paused().cut_off()
    assert told.turn.waiting_calls == ()
    paused = told.turn.status

    told.resumed().begun()

    assert (paused, told.turn.status) == (Status.PAUSED, Status.WAITING_FOR_APPROVAL)
