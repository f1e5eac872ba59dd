"""Where a history can be resumed: from the history alone, and from a turn that is not over."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.turn import inputs as i
from app.turn.changes import Changes
from app.turn.ids import FailureId
from app.turn.resume_point import (
    NotResumable,
    Resumable,
    UnansweredCall,
    of_active,
    of_ended,
    of_history,
)
from app.turn.status import Status
from app.turn.transcript import (
    AssistantMessage,
    Message,
    NoticeMessage,
    Outcome,
    StopReason,
    ToolResult,
)
from tests.support.brought import (
    ANY_HISTORY,
    ANY_MESSAGE,
    PASSED_OVER,
    RECORDED,
    as_recorded,
    read,
)
from tests.support.calls_that_wait import WAITS_OF_CALLS, together
from tests.support.sizes import size
from tests.support.turns import (
    IDEMPOTENT,
    MISFITS,
    QUOTA,
    READS,
    SHIP,
    WRITES,
    Told,
    a_call,
    an_agent,
    an_answer,
    an_approval,
)

MORE = settings(max_examples=size(100, soak=10_000))


@MORE
@given(ANY_HISTORY)
def test_any_history_has_one_resume_point_and_the_same_each_time(history: list[Message]) -> None:
    point = of_history(history)

    assert of_history(tuple(history)) == point
    if isinstance(point, Resumable):
        assert bool(point.unanswered) == (point.kind == "RECOVER_TOOLS")


@MORE
@given(ANY_HISTORY, st.lists(PASSED_OVER, max_size=3))
def test_case_77_what_is_passed_over_at_the_end_changes_nothing(
    history: list[Message], more: list[Message]
) -> None:
    assert of_history([*history, *more]) == of_history(history)


@MORE
@given(ANY_HISTORY, ANY_HISTORY)
def test_what_stands_before_the_last_thing_said_changes_nothing(
    before: list[Message], history: list[Message]
) -> None:
    said = NoticeMessage(text="", cause="imported")

    assert of_history([*before, said, *history]) == of_history([said, *history])


@MORE
@given(ANY_HISTORY)
def test_once_each_call_has_its_result_the_model_is_next(history: list[Message]) -> None:
    point = of_history(history)
    calls = point.unanswered if isinstance(point, Resumable) else ()
    results = [
        ToolResult(call_id=c.call_id, tool_name="", outcome=Outcome.UNKNOWN, content="")
        for c in calls
    ]

    if calls:
        assert of_history([*history, *results]) == Resumable(kind="CALL_MODEL")


@MORE
@given(ANY_HISTORY, ANY_MESSAGE)
def test_calls_that_nobody_has_answered_are_reported_and_never_run(
    history: list[Message], last: Message
) -> None:
    point = of_history([*history, last])

    calls = point.unanswered if isinstance(point, Resumable) else ()
    assert all(call.rule == "report" for call in calls)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["id"])
def test_a_recorded_history_is_judged_as_recorded(recorded: Mapping[str, Any]) -> None:
    assert as_recorded(of_history(read(recorded["messages"]))) == recorded["expected"]


@pytest.mark.parametrize("stop", StopReason)
def test_case_78_calls_decide_before_the_stop_reason(stop: StopReason) -> None:
    asked = AssistantMessage(text="", tool_calls=(a_call("c1"), a_call("c2")), stop_reason=stop)

    point = of_history([asked])

    assert isinstance(point, Resumable)
    assert [call.call_id for call in point.unanswered] == ["c1", "c2"]


# --- Turns that are not over ---------------------------------------------------------------------


def test_case_81_a_turn_at_work_is_running() -> None:
    assert of_active(Told().turn, an_agent(), is_lost=False) == NotResumable(reason="running")
    assert of_active(Told().begun().turn, an_agent(), is_lost=False) == NotResumable(
        reason="running"
    )


def test_a_turn_on_hold_waits() -> None:
    assert of_active(Told(held=True).turn, an_agent(), is_lost=False) == NotResumable(
        reason="waiting"
    )


def test_a_turn_that_asks_its_user_waits() -> None:
    told = Told().begun().asked()

    assert of_active(told.turn, an_agent(), is_lost=False) == NotResumable(reason="waiting")


def test_a_turn_that_waits_for_its_model_is_resumed_by_its_failure() -> None:
    told = Told().begun().gave_up(QUOTA)

    point = of_active(told.turn, an_agent(), is_lost=False)

    assert point == Resumable(kind="CALL_MODEL", failure_id=FailureId("f1"))


def test_a_turn_whose_model_broke_off_begins_its_answer_again() -> None:
    told = Told().begun().gave_up(QUOTA, text="Half of")

    point = of_active(told.turn, an_agent(), is_lost=False)

    assert point == Resumable(kind="RETRY_RESPONSE", failure_id=FailureId("f1"))


def test_a_paused_turn_goes_on_with_its_model() -> None:
    assert of_active(Told().paused().turn, an_agent(), is_lost=False) == Resumable(
        kind="CALL_MODEL"
    )


def test_a_turn_that_was_paused_while_it_wrote_begins_its_answer_again() -> None:
    told = Told().begun().wrote("Half of").paused()

    assert of_active(told.turn, an_agent(), is_lost=False) == Resumable(kind="RETRY_RESPONSE")


def test_case_66_the_calls_of_a_lost_round_are_named_with_what_becomes_of_them() -> None:
    agent = an_agent()
    answer = an_answer(
        "", a_call("c1"), a_call("c2", WRITES), a_call("c3", IDEMPOTENT), a_call("c4", READS)
    )
    told = Told(agent).begun().answered(answer).finished("c1")

    point = of_active(told.turn, an_agent(), is_lost=True)

    assert isinstance(point, Resumable)
    assert point.kind == "RECOVER_TOOLS"
    assert point.unanswered == (
        UnansweredCall(call_id=a_call("c2").call_id, tool_name="pay", rule="report"),
        UnansweredCall(call_id=a_call("c3").call_id, tool_name="book", rule="rerun_idempotent"),
        UnansweredCall(call_id=a_call("c4").call_id, tool_name="look_up", rule="rerun"),
    )


def test_a_lost_call_of_the_model_is_made_again() -> None:
    told = Told().begun()

    assert of_active(told.turn, an_agent(), is_lost=True) == Resumable(kind="CALL_MODEL")
    told.wrote("Half of")
    assert of_active(told.turn, an_agent(), is_lost=True) == Resumable(kind="RETRY_RESPONSE")


# --- Turns with calls that wait for somebody -----------------------------------------------------


@pytest.mark.parametrize("state", WAITS_OF_CALLS)
def test_what_waits_waits_and_what_runs_runs_whoever_else_is_waited_for(state: str) -> None:
    turn = WAITS_OF_CALLS[state]().turn

    point = of_active(turn, an_agent(), is_lost=False)

    if turn.status is Status.PAUSED:
        assert isinstance(point, Resumable)
    else:
        runs = turn.status is Status.RUNNING
        assert point == NotResumable(reason="running" if runs else "waiting")


@pytest.mark.parametrize("state", WAITS_OF_CALLS)
def test_cases_107_and_108_a_call_that_waits_goes_on_waiting(state: str) -> None:
    turn = WAITS_OF_CALLS[state]().turn

    point = of_active(turn, an_agent(), is_lost=True)

    if isinstance(point, Resumable):
        waits = {call.call_id for call in turn.open_calls if call.wait is not None}
        assert {call.call_id for call in point.unanswered if call.rule == "wait"} == waits


def test_a_paused_turn_names_the_call_that_waits_beside_the_one_that_is_due() -> None:
    told = together(a_call("A", SHIP), a_call("B", WRITES)).paused()
    told.finished("B", needs=an_approval())

    point = of_active(told.turn, an_agent(), is_lost=False)

    assert told.turn.status is Status.PAUSED
    assert isinstance(point, Resumable)
    assert [(call.call_id, call.rule) for call in point.unanswered] == [
        ("A", "wait"),
        ("B", "wait"),
    ]


# --- Turns that are over -------------------------------------------------------------------------


def test_a_cancelled_turn_goes_on_behind_its_closed_history() -> None:
    told = Told().begun().answered(an_answer("", a_call("c1", WRITES))).cancelled()
    told.finished("c1")
    transcript = [told.transcript[place] for place in sorted(told.transcript)]

    assert told.turn.is_terminal
    assert of_ended(told.turn, transcript) == Resumable(kind="CALL_MODEL")


def test_a_refusal_without_words_is_a_refusal() -> None:
    told = Told().begun().answered(an_answer(stop=StopReason.REFUSAL))
    transcript = [told.transcript[place] for place in sorted(told.transcript)]

    point = of_ended(told.turn, transcript)

    assert point == NotResumable(reason="refused", stop=StopReason.REFUSAL)


def test_a_finished_answer_that_failed_its_turn_is_begun_again() -> None:
    told = Told().begun().answered(an_answer("four"), output=MISFITS)
    told.answered(an_answer("five"), output=MISFITS)
    transcript = [told.transcript[place] for place in sorted(told.transcript)]

    point = of_ended(told.turn, transcript)

    assert point == Resumable(kind="RETRY_RESPONSE", stop=StopReason.END_TURN)


# --- The notice to begin again -------------------------------------------------------------------


def test_a_retry_behind_half_an_answer_tells_the_model_to_begin_again() -> None:
    told = Told().begun().gave_up(QUOTA, text="Half of").retried()

    assert told.types == ["MESSAGE_ADDED", "TURN_RESUMED"]
    last = told.transcript[max(told.transcript)]
    assert isinstance(last, NoticeMessage)
    assert last.cause == "retry_response"


def test_the_model_is_told_to_begin_again_once() -> None:
    told = Told().begun().gave_up(QUOTA, text="Half of").retried()
    told.begun().gave_up(QUOTA, failure_id="f2").retried("f2")

    assert told.types == ["TURN_RESUMED"]


def test_it_is_told_again_behind_another_half() -> None:
    told = Told().begun().gave_up(QUOTA, text="Half of").retried()
    told.begun().gave_up(QUOTA, failure_id="f2", text="Half").retried("f2")

    assert told.types == ["MESSAGE_ADDED", "TURN_RESUMED"]


def test_another_model_holds_from_the_resume_on() -> None:
    told = Told().begun().gave_up(QUOTA)

    told.tell(i.RetryModel(failure_id=FailureId("f1"), changes=Changes(model="other/large")))
    assert told.turn.model == "other/large"
    told.begun().paused().resumed()
    assert told.turn.model == "other/large"
