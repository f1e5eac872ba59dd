"""What people ask of a turn, in each of its states."""

import pytest

from app.turn import inputs as i
from app.turn.agent import RetryPolicy
from app.turn.errors import (
    ConversationBusy,
    CorrelationMismatch,
    Rejected,
    RetryNotDue,
    TurnNotBlocked,
    TurnTerminal,
    WrongCommand,
)
from app.turn.ids import FailureId
from app.turn.states import ModelDue
from app.turn.status import Status
from app.turn.transcript import ClosingMessage, Usage
from tests.support.turns import OVERLOADED, QUOTA, Told, a_call, a_message, an_agent, an_answer


def waiting() -> Told:
    answer = an_answer("", *(a_call(f"c{n}") for n in range(10)))
    told = Told().begun().answered(answer)
    told.finished(*(f"c{n}" for n in range(8))).finished("c8", "c9")
    return told.gave_up(QUOTA)


def scheduled() -> Told:
    return Told(an_agent(retry=RetryPolicy(max_retries=1))).begun().gave_up(OVERLOADED)


def test_case_17_a_retry_keeps_every_result_and_adds_no_message() -> None:
    told = waiting()
    before = dict(told.transcript)

    told.retried()

    assert told.transcript == before
    assert told.turn.state == ModelDue()
    assert told.types == ["TURN_RESUMED"]
    assert told.turn.current_failure is None


@pytest.mark.parametrize("stale", ["f2", "", "F1", "f1 ", "\0", "fail_" + "x" * 200])
def test_case_14_a_retry_of_another_failure_is_refused(stale: str) -> None:
    told = waiting()

    with pytest.raises(CorrelationMismatch, match="'f1'"):
        told.retried(stale)


def test_case_16_a_retry_that_fails_again_waits_with_a_new_failure() -> None:
    told = waiting().retried().begun().gave_up(QUOTA, failure_id="f2")

    failure = told.turn.current_failure
    assert failure is not None
    assert failure.failure_id == "f2"
    assert told.turn.counters.model_failures == 2


def test_case_8_a_second_press_of_retry_is_refused() -> None:
    told = waiting().retried()

    with pytest.raises(TurnNotBlocked):
        told.retried()


def test_case_18_a_message_goes_on_with_the_waiting_turn() -> None:
    told = waiting().posted("try again", "m2")

    assert told.transcript[12] == a_message("try again", "m2")
    assert told.types == ["MESSAGE_ADDED", "TURN_RESUMED"]
    assert told.turn.current_failure is None


@pytest.mark.parametrize("given", [i.Retry(), i.ContinueNow()])
def test_case_19_a_turn_that_waits_for_the_model_takes_no_other_command(given: i.Request) -> None:
    with pytest.raises(WrongCommand):
        waiting().tell(given)


def test_case_20_a_scheduled_retry_takes_no_retry_model() -> None:
    with pytest.raises(WrongCommand):
        scheduled().retried("f1")


def test_case_37_a_retry_before_its_time_is_refused_and_continue_takes_it() -> None:
    told = scheduled()

    with pytest.raises(RetryNotDue, match="2026"):
        told.tell(i.Retry())

    assert told.tell(i.ContinueNow()).turn.state == ModelDue()


def test_a_retry_that_is_due_keeps_the_count_and_every_other_way_on_clears_it() -> None:
    due = scheduled().later(minutes=2).tell(i.Retry())
    forced = scheduled().tell(i.ContinueNow())
    messaged = scheduled().posted()

    assert due.turn.counters.consecutive_retries == 1
    assert forced.turn.counters.consecutive_retries == 0
    assert messaged.turn.counters.consecutive_retries == 0


def test_case_38_a_worker_does_not_begin_before_the_time() -> None:
    told = scheduled().begun()
    assert told.last == ()

    told.later(minutes=2).begun()
    assert told.types == ["TURN_RESUMED", "STEP_STARTED", "MODEL_STARTED"]


@pytest.mark.parametrize("told", [Told(), Told().begun()], ids=["ready", "running"])
def test_case_3_a_turn_at_work_is_busy(told: Told) -> None:
    with pytest.raises(ConversationBusy):
        told.posted()


@pytest.mark.parametrize(
    "given", [i.RetryModel(failure_id=FailureId("f1")), i.Retry(), i.ContinueNow()]
)
def test_a_turn_at_work_takes_no_command(given: i.Request) -> None:
    with pytest.raises(TurnNotBlocked):
        Told().begun().tell(given)


@pytest.mark.parametrize(
    "given",
    [
        i.RetryModel(failure_id=FailureId("f1")),
        i.Retry(),
        i.ContinueNow(),
        i.Cancel(),
        i.PostMessage(message=a_message()),
    ],
)
def test_an_ended_turn_takes_nothing_more(given: i.Request) -> None:
    with pytest.raises(TurnTerminal):
        Told().begun().answered(an_answer("done")).tell(given)


@pytest.mark.parametrize("told", [Told(), waiting(), scheduled()], ids=["ready", "waits", "due"])
def test_a_turn_with_nothing_in_flight_is_cancelled_at_once(told: Told) -> None:
    told.cancelled()

    assert told.turn.status == Status.CANCELLED
    assert told.types[-1] == "TURN_CANCELLED"
    assert isinstance(told.transcript[told.turn.next_position - 1], ClosingMessage)


def test_case_122_a_second_cancel_says_nothing_new() -> None:
    told = Told().begun().cancelled()
    assert told.types == ["CANCELLATION_REQUESTED"]

    assert told.cancelled().last == ()


def test_case_126_cancelling_a_cancelled_turn_changes_nothing() -> None:
    assert Told().cancelled().cancelled().last == ()


def test_case_123_an_answer_that_comes_after_the_cancellation_is_dropped() -> None:
    told = Told().begun().cancelled().answered(an_answer("too late", a_call("A")))

    assert told.turn.status == Status.CANCELLED
    assert told.turn.open_calls == ()
    assert [message.role for message in told.transcript.values()] == ["user", "closing"]
    assert "MODEL_TEXT" not in told.types


def test_what_a_dropped_answer_has_cost_is_counted() -> None:
    spent = Usage(input_tokens=100, output_tokens=10)

    told = Told().begun().cancelled().answered(an_answer("too late", usage=spent))

    assert told.turn.status == Status.CANCELLED
    assert told.turn.usage == spent


def test_case_125_cancellation_beats_a_failure() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=1))).begun().cancelled()

    assert told.gave_up(OVERLOADED).turn.status == Status.CANCELLED


def test_cancellation_beats_a_fault_of_ours() -> None:
    told = Told().begun().cancelled()

    told.tell(i.StepCrashed(attempt_id=told.attempt))

    assert told.turn.status == Status.CANCELLED


def test_a_cancelled_turn_that_nobody_works_on_ends_at_the_next_begin() -> None:
    told = waiting().retried().cancelled()
    assert told.turn.status == Status.RUNNING

    assert told.begun().turn.status == Status.CANCELLED


def test_a_refusal_names_the_turn_as_it_is() -> None:
    told = waiting()

    with pytest.raises(Rejected) as refused:
        told.retried("other")

    assert refused.value.turn == told.turn
