"""Stopping a turn to go on later, and the limits that stop it by themselves."""

from datetime import timedelta

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Limits, RetryPolicy
from app.turn.errors import TurnNotBlocked, TurnTerminal, WrongCommand
from app.turn.states import LimitReached, Paused, RunningTools
from app.turn.status import Cursor, LimitName, PauseCause, Status
from app.turn.transcript import ToolResult, Usage
from tests.support.turns import (
    OVERLOADED,
    QUOTA,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
)


def two_calls(limits: Limits | None = None) -> Told:
    """Two calls of which one is in flight."""
    told = Told(an_agent(limits=limits or Limits(parallel_tools=1))).begun()
    return told.answered(an_answer("", a_call("A"), a_call("B", WRITES)))


def results(told: Told) -> dict[str, str]:
    found = [m for m in told.transcript.values() if isinstance(m, ToolResult)]
    return {result.call_id: result.outcome.value for result in found}


def test_a_pause_drops_a_model_call_at_once() -> None:
    told = Told().begun().wrote("Once upon").paused()

    assert told.types == ["PAUSE_REQUESTED", "MODEL_STOPPED", "STEP_COMPLETED", "TURN_PAUSED"]
    assert told.turn.status is Status.PAUSED
    assert told.answered(an_answer("too late")).last == ()


def test_a_pause_lets_tools_in_flight_end_and_begins_nothing_more() -> None:
    told = two_calls().paused()
    assert told.types == ["PAUSE_REQUESTED"]

    told.finished("A")

    assert told.types == ["TOOL_COMPLETED", "STEP_COMPLETED", "TURN_PAUSED"]
    assert [call.call_id for call in told.turn.open_calls] == ["B"]
    assert told.turn.cursor is Cursor.PROCESS_TOOLS


def test_a_paused_turn_goes_on_with_the_calls_that_were_left() -> None:
    told = two_calls().paused().finished("A").resumed().begun()

    assert told.types == ["STEP_STARTED", "TOOL_STARTED"]
    told.finished("B")
    assert told.types[-1] == "MODEL_STARTED"
    assert results(told) == {"A": "completed", "B": "completed"}


@pytest.mark.parametrize(
    "told",
    [
        Told(),
        Told(an_agent(retry=RetryPolicy(max_retries=1))).begun().gave_up(OVERLOADED),
        Told().begun().gave_up(QUOTA).retried(),
    ],
    ids=["ready", "retry scheduled", "model due"],
)
def test_case_129_a_pause_where_nothing_is_in_flight_is_at_once_and_resume_ends_it(
    told: Told,
) -> None:
    turn_id = told.turn.identity.turn_id

    told.paused()
    assert told.types == ["TURN_PAUSED"]
    told.resumed().begun().answered(an_answer("done"))

    assert (told.turn.status, told.turn.identity.turn_id) == (Status.COMPLETED, turn_id)


def test_a_second_pause_says_nothing_new() -> None:
    assert Told().paused().paused().last == ()
    assert two_calls().paused().paused().last == ()


def test_a_turn_that_waits_is_not_paused_and_an_ended_one_neither() -> None:
    with pytest.raises(WrongCommand):
        Told().begun().gave_up(QUOTA).paused()
    with pytest.raises(TurnTerminal):
        Told().begun().answered(an_answer("done")).paused()


def test_resume_fits_a_paused_turn_only() -> None:
    with pytest.raises(TurnNotBlocked):
        Told().resumed()
    with pytest.raises(WrongCommand):
        Told().begun().gave_up(QUOTA).resumed()
    with pytest.raises(TurnTerminal):
        Told().cancelled().resumed()


def test_cancelling_beats_a_pause_that_was_asked_for() -> None:
    told = two_calls().paused().cancelled().finished("A")

    assert told.turn.status is Status.CANCELLED


def test_a_paused_turn_is_cancelled_at_once_and_its_calls_are_closed() -> None:
    told = two_calls().paused().finished("A").cancelled()

    assert told.turn.status is Status.CANCELLED
    assert results(told) == {"A": "completed", "B": "cancelled"}


def test_a_pause_that_was_asked_for_survives_the_worker() -> None:
    told = two_calls().paused().lost()

    assert told.turn.status is Status.PAUSED
    assert [(c.call_id, c.in_flight) for c in told.turn.open_calls] == [("A", False), ("B", False)]


def test_a_message_to_a_paused_turn_closes_what_is_open_and_comes_after_it() -> None:
    told = two_calls().paused().finished("A").posted("no, this", "m2")

    assert told.types == ["TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_RESUMED"]
    assert results(told) == {"A": "completed", "B": "superseded"}
    assert told.transcript[4] == a_message("no, this", "m2")


def test_case_84_replanning_interrupts_whatever_waits() -> None:
    told = Told().begun().gave_up(QUOTA)

    told.tell(i.Replan(message=a_message("no, this", "m2")))

    resumed = told.events[-1]
    assert isinstance(resumed, e.TurnResumed)
    assert resumed.command_type == "REPLAN_WITH_MESSAGE"
    assert told.transcript[1] == a_message("no, this", "m2")


def test_replanning_a_turn_at_work_is_refused() -> None:
    with pytest.raises(TurnNotBlocked):
        Told().begun().tell(i.Replan(message=a_message("no, this", "m2")))


def test_case_118_no_tool_of_an_answer_that_breaks_the_token_budget_runs() -> None:
    told = Told(an_agent(limits=Limits(max_total_tokens=10))).begun()

    told.answered(an_answer("", a_call("A"), usage=Usage(input_tokens=9, output_tokens=2)))

    assert told.turn.state == LimitReached(limit=LimitName.TOTAL_TOKENS, used=11, allowed=10)
    assert told.turn.status is Status.BUDGET_EXCEEDED
    assert "TOOL_STARTED" not in told.types
    assert results(told) == {"A": "cancelled"}


def test_a_token_budget_that_is_just_used_up_is_not_broken() -> None:
    told = Told(an_agent(limits=Limits(max_input_tokens=9))).begun()

    told.answered(an_answer("", a_call("A"), usage=Usage(input_tokens=9)))

    assert isinstance(told.turn.state, RunningTools)


def test_the_tool_beyond_max_tool_calls_is_not_entered() -> None:
    told = two_calls(Limits(max_tool_calls=1)).finished("A")

    assert told.turn.state == LimitReached(limit=LimitName.TOOL_CALLS, used=1, allowed=1)
    assert results(told) == {"A": "completed", "B": "cancelled"}


def test_no_more_tools_are_in_flight_than_the_budget_still_allows() -> None:
    told = two_calls(Limits(max_tool_calls=1))

    assert [call.in_flight for call in told.turn.open_calls] == [True, False]


def test_a_time_budget_is_reached_at_its_time() -> None:
    told = Told(an_agent(limits=Limits(max_duration=timedelta(minutes=10)))).begun()

    told.later(minutes=10).answered(an_answer("", a_call("A")))

    assert told.turn.state == LimitReached(limit=LimitName.DURATION, used=600, allowed=600)


@pytest.mark.parametrize(
    ("counts", "status"), [(True, Status.BUDGET_EXCEEDED), (False, Status.RUNNING)]
)
def test_case_117_waiting_counts_against_the_time_unless_the_agent_says_otherwise(
    *, counts: bool, status: Status
) -> None:
    limits = Limits(max_duration=timedelta(minutes=10), count_waiting=counts)
    told = Told(an_agent(limits=limits)).begun().gave_up(QUOTA)

    told.later(minutes=10).retried().begun()

    assert told.turn.status is status


def test_case_43_a_due_retry_whose_time_is_spent_makes_no_second_call() -> None:
    agent = an_agent(
        retry=RetryPolicy(max_retries=1), limits=Limits(max_duration=timedelta(minutes=1))
    )
    told = Told(agent).begun().gave_up(OVERLOADED).later(minutes=2).begun()

    assert told.turn.status is Status.BUDGET_EXCEEDED
    assert told.turn.counters.model_attempts == 1


def test_a_blocking_limit_pauses_the_turn_with_everything_kept() -> None:
    told = two_calls(Limits(max_tool_calls=1, is_blocking=True)).finished("A")

    assert isinstance(told.turn.state, Paused)
    assert told.turn.state.cause is PauseCause.LIMIT
    assert told.turn.state.limit is LimitName.TOOL_CALLS
    assert [call.call_id for call in told.turn.open_calls] == ["B"]


def test_other_limits_bring_a_turn_back_that_a_limit_has_paused() -> None:
    told = two_calls(Limits(max_tool_calls=1, is_blocking=True)).finished("A")

    assert told.copy().resumed().begun().turn.status is Status.PAUSED
    told.resumed(Limits(max_tool_calls=2, is_blocking=True)).begun()

    assert isinstance(told.turn.state, RunningTools)


def test_a_turn_may_complete_at_its_limit() -> None:
    told = Told(an_agent(limits=Limits(max_total_tokens=1))).begun()

    told.answered(an_answer("done", usage=Usage(input_tokens=50)))

    assert told.turn.status is Status.COMPLETED
