"""Tools that fail: told to the model, tried again where they may be, or the end of the turn."""

from datetime import timedelta

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.states import CallingModel, Failed, RunningTools, ToolRetryScheduled
from app.turn.status import Status
from app.turn.transcript import Outcome, ToolResult
from tests.support.turns import FLAKY, NOON, READS, VITAL, Told, a_call, a_message, an_answer


def failed_once(*more: str) -> Told:
    """A flaky call `A` that has failed once, behind `more` reading calls that are done."""
    calls = (*(a_call(c, READS) for c in more), a_call("A", FLAKY))
    told = Told().begun().answered(an_answer("", *calls))
    if more:
        told.finished(*more)
    return told.finished("A", outcome=Outcome.ERROR)


def results(told: Told) -> dict[str, str]:
    found = [m for m in told.transcript.values() if isinstance(m, ToolResult)]
    return {result.call_id: result.outcome.value for result in found}


def test_case_41_only_the_failed_call_is_tried_again_and_knows_of_it() -> None:
    told = failed_once("X", "Y")
    assert told.types == [
        "TOOL_ATTEMPT_FAILED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
        "RETRY_SCHEDULED",
    ]

    told.later(minutes=1).begun()

    assert told.types == ["TURN_RESUMED", "STEP_STARTED", "TOOL_STARTED"]
    (call,) = told.turn.open_calls
    assert (call.call_id, call.attempt, call.previous_error) == ("A", 2, "result A")
    assert told.turn.counters.model_attempts == 1


def test_the_delay_grows_with_every_attempt_and_ends_with_the_policy() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", FLAKY)))

    delays: list[timedelta] = []
    for _ in range(2):
        told.finished("A", outcome=Outcome.ERROR)
        assert isinstance(told.turn.state, ToolRetryScheduled)
        delays.append(told.turn.state.due_at - told.at)
        told.later(minutes=1).begun()
    told.finished("A", outcome=Outcome.ERROR)

    assert delays == [timedelta(seconds=1), timedelta(seconds=2)]
    assert results(told) == {"A": "error"}
    assert isinstance(told.turn.state, CallingModel)
    assert told.turn.counters.retries == 2


def test_others_go_on_while_a_failed_call_waits() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", FLAKY), a_call("B")))

    told.finished("A", outcome=Outcome.ERROR)

    assert told.types == ["TOOL_ATTEMPT_FAILED"]
    assert isinstance(told.turn.state, RunningTools)
    told.finished("B")
    assert told.turn.status is Status.RETRY_SCHEDULED


def test_a_call_whose_time_has_come_meanwhile_goes_on_in_the_same_round() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", FLAKY), a_call("B")))

    told.finished("A", outcome=Outcome.ERROR).later(minutes=1).finished("B")

    assert told.types == ["TOOL_COMPLETED", "TOOL_STARTED"]


def test_continue_tries_it_now_and_retry_only_when_it_is_due() -> None:
    told = failed_once().tell(i.ContinueNow()).begun()
    assert told.types == ["STEP_STARTED", "TOOL_STARTED"]

    due = failed_once().later(minutes=1).tell(i.Retry()).begun()
    assert due.types == ["STEP_STARTED", "TOOL_STARTED"]


def test_case_42_a_message_closes_the_call_and_no_tool_runs() -> None:
    told = failed_once().posted("never mind", "m2")

    assert told.types == ["TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_RESUMED"]
    assert results(told) == {"A": "superseded"}
    assert told.transcript[3] == a_message("never mind", "m2")
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


def test_case_46_cancelling_a_scheduled_retry_closes_its_call() -> None:
    told = failed_once().cancelled()

    assert told.turn.status is Status.CANCELLED
    assert results(told) == {"A": "cancelled"}


def test_a_tool_that_writes_is_tried_again_only_when_it_says_that_nothing_was_done() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", VITAL), a_call("B", VITAL)))

    told.finished("A", outcome=Outcome.NOT_STARTED)
    assert told.types == ["TOOL_ATTEMPT_FAILED"]
    told.finished("B", outcome=Outcome.ERROR)

    assert told.turn.state == Failed(reason="tool_failed")
    assert results(told) == {"A": "cancelled", "B": "error"}


def test_a_failing_turn_waits_for_what_is_in_flight_and_keeps_its_results() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", VITAL), a_call("B")))

    told.finished("A", outcome=Outcome.ERROR)
    assert told.types == ["TOOL_FAILED"]
    told.finished("B")

    assert told.turn.status is Status.FAILED
    assert results(told) == {"A": "error", "B": "completed"}


def test_a_failing_turn_fails_also_when_the_worker_of_its_last_call_is_lost() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", VITAL), a_call("B", READS)))
    told.finished("A", outcome=Outcome.ERROR)

    told.lost()

    assert told.turn.state == Failed(reason="tool_failed")
    assert results(told) == {"A": "error", "B": "unknown"}
    assert told.types == ["STEP_RECOVERED", "TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_FAILED"]


@pytest.mark.parametrize("minutes", [0, 5])
def test_a_round_that_is_lost_while_a_call_waits_for_its_retry_forgets_neither(
    minutes: int,
) -> None:
    told = Told().begun().answered(an_answer("", a_call("A", FLAKY), a_call("B")))
    told.finished("A", outcome=Outcome.ERROR).later(minutes=minutes).lost()

    calls = {str(call.call_id): (call.attempt, call.in_flight) for call in told.turn.open_calls}
    assert calls["B"] == (2, True)
    assert calls["A"] == ((2, True) if minutes else (1, False))


def test_the_wait_for_a_retry_says_when() -> None:
    told = failed_once()

    suspended = [event for event in told.events if isinstance(event, e.TurnSuspended)]
    assert suspended[0].next_runnable_at == NOON + timedelta(seconds=1)
    assert told.turn.due_at == NOON + timedelta(seconds=1)


def test_a_command_begins_a_new_chain_of_retries_and_a_due_retry_does_not() -> None:
    told = failed_once().later(minutes=5).begun().finished("A", outcome=Outcome.ERROR)
    assert told.turn.counters.consecutive_retries == 2

    told.tell(i.ContinueNow())

    assert told.turn.counters.consecutive_retries == 0
    told.begun().finished("A", outcome=Outcome.ERROR)
    assert told.turn.status is Status.RETRY_SCHEDULED  # its third failure, and its first since
    assert told.turn.counters.retries == 3
