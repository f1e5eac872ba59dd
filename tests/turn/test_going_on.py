"""Answers behind which the model is simply called once more."""

from dataclasses import replace

from app.turn import events as e
from app.turn.agent import Agent, Limits, RetryPolicy
from app.turn.failures import FailureType
from app.turn.resume_point import Resumable, of_ended
from app.turn.states import CallingModel, Completed, WaitingForModel
from app.turn.status import Status
from app.turn.transcript import AssistantMessage, NoticeMessage, StopReason, Usage
from tests.support.turns import FITS, OVERLOADED, Told, a_call, an_agent, an_answer

A_PAUSE = an_answer("Searching. ", stop=StopReason.PAUSED, opaque="sealed")
CUT = an_answer("Once ", stop=StopReason.MAX_OUTPUT)
EMPTY = an_answer(" \n")


def continuing(times: int = 3) -> Agent:
    return replace(an_agent(), on_truncated="continue", max_continuations=times)


def notices(told: Told) -> list[str]:
    said = told.transcript.values()
    return [message.cause for message in said if isinstance(message, NoticeMessage)]


def point(told: Told) -> object:
    return of_ended(told.turn, list(told.transcript.values()))


# --- The provider pauses (T29) --------------------------------------------------------------------


def test_an_answer_that_paused_is_gone_on_with_at_once_and_nobody_is_told() -> None:
    told = Told().begun().answered(A_PAUSE)

    assert told.types == [
        "MODEL_TEXT",
        "MODEL_COMPLETED",
        "STEP_COMPLETED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]
    assert told.transcript[1] == AssistantMessage(
        text="Searching. ", stop_reason=StopReason.PAUSED, opaque="sealed"
    )


def test_case_31_five_pauses_are_invisible_and_the_sixth_is_an_end() -> None:
    told = Told().begun()
    for _ in range(5):
        assert "MODEL_STOPPED" not in told.answered(A_PAUSE).types
        assert isinstance(told.turn.state, CallingModel)

    told.answered(A_PAUSE)

    assert told.turn.state == Completed(stop_reason=StopReason.PAUSED, position=6, begins_at=1)
    assert "MODEL_STOPPED" in told.types
    assert point(told) == Resumable(kind="CALL_MODEL", stop=StopReason.PAUSED)


def test_pauses_count_in_a_row() -> None:
    told = Told().begun()
    for _ in range(5):
        told.answered(A_PAUSE)
    told.answered(an_answer("", a_call("A"))).finished("A")

    assert isinstance(told.answered(A_PAUSE).turn.state, CallingModel)


def test_a_pause_that_has_said_nothing_but_to_its_provider_is_sent_back() -> None:
    told = Told().begun().answered(an_answer("", stop=StopReason.PAUSED, opaque="sealed"))

    assert told.transcript[1] == AssistantMessage(
        text="", stop_reason=StopReason.PAUSED, opaque="sealed"
    )


def test_six_pauses_without_a_word_are_an_end_that_can_be_resumed() -> None:
    told = Told().begun()
    for _ in range(6):
        told.answered(an_answer("", stop=StopReason.PAUSED))

    assert told.turn.state == Completed(stop_reason=StopReason.PAUSED, position=None)
    assert point(told) == Resumable(kind="CALL_MODEL", stop=StopReason.PAUSED)


def test_a_pause_goes_no_further_than_the_limits_of_the_turn() -> None:
    told = Told(an_agent(limits=Limits(max_iterations=2))).begun()

    assert told.answered(A_PAUSE).answered(A_PAUSE).turn.status is Status.MAX_ITERATIONS_REACHED


def test_the_answer_behind_pauses_begins_with_the_first_of_them() -> None:
    told = Told().begun().answered(A_PAUSE).answered(A_PAUSE).answered(an_answer("Found."))

    assert told.turn.state == Completed(stop_reason=StopReason.END_TURN, position=3, begins_at=1)


def test_a_message_of_the_user_begins_another_answer() -> None:
    told = Told().begun().steered().answered(A_PAUSE).answered(an_answer("Found."))

    assert told.turn.state == Completed(stop_reason=StopReason.END_TURN, position=3)


# --- The output limit cuts (T30) ------------------------------------------------------------------


def test_a_cut_answer_is_the_answer_unless_the_agent_wants_more() -> None:
    told = Told().begun().answered(CUT)

    assert told.turn.state == Completed(stop_reason=StopReason.MAX_OUTPUT, position=1)


def test_a_cut_answer_is_continued_behind_a_notice() -> None:
    told = Told(continuing()).begun().answered(CUT)

    assert told.types == [
        "MODEL_TEXT",
        "MODEL_COMPLETED",
        "MODEL_STOPPED",
        "STEP_COMPLETED",
        "MESSAGE_ADDED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]
    assert notices(told) == ["continue_response"]


def test_its_parts_are_one_answer() -> None:
    told = Told(continuing()).begun().answered(CUT).answered(CUT).answered(an_answer("upon"))

    assert told.turn.state == Completed(stop_reason=StopReason.END_TURN, position=5, begins_at=1)
    assert notices(told) == ["continue_response", "continue_response"]


def test_case_28_an_answer_is_continued_so_often_and_then_stands_as_it_is() -> None:
    told = Told(continuing(2)).begun().answered(CUT).answered(CUT)
    assert told.turn.status is Status.RUNNING

    ended = told.answered(CUT).turn

    assert ended.state == Completed(stop_reason=StopReason.MAX_OUTPUT, position=5, begins_at=1)
    assert point(told) == Resumable(kind="CONTINUE_RESPONSE", stop=StopReason.MAX_OUTPUT)


def test_a_continuation_that_is_lost_is_asked_for_once() -> None:
    told = Told(continuing()).begun().answered(CUT).lost().lost()

    assert notices(told) == ["continue_response"]
    ended = told.answered(an_answer("upon")).turn
    assert ended.state == Completed(stop_reason=StopReason.END_TURN, position=3, begins_at=1)


def test_an_answer_that_is_begun_again_is_the_whole_answer() -> None:
    told = Told(continuing()).begun().answered(CUT).gave_up(OVERLOADED, text="up").retried()

    told.begun().answered(an_answer("Once upon"))

    assert told.turn.state == Completed(stop_reason=StopReason.END_TURN, position=5)


def test_usable_calls_of_a_cut_answer_run_and_cut_ones_do_not() -> None:
    cut = a_call("B", problem="The arguments were cut off.")

    told = Told().begun().answered(an_answer("", a_call("A"), cut, stop=StopReason.MAX_OUTPUT))

    assert [call.call_id for call in told.turn.open_calls] == ["A"]
    assert "TOOL_FAILED" in told.types


def test_a_cut_answer_with_nothing_usable_waits_whatever_the_agent_wants() -> None:
    told = Told(continuing()).begun().answered(an_answer(" ", stop=StopReason.MAX_OUTPUT))

    assert isinstance(told.turn.state, WaitingForModel)
    assert told.turn.state.record.failure.type is FailureType.TOKEN_LIMIT_EXCEEDED


def test_a_value_that_came_in_parts_is_the_output() -> None:
    told = Told(continuing()).begun().answered(CUT).answered(an_answer("3}"), output=FITS)

    assert told.turn.output == FITS.value


# --- Nothing is said (T30a) -----------------------------------------------------------------------


def test_scenario_097_an_empty_answer_is_asked_again_twice_and_then_waits() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=9))).begun().answered(EMPTY).answered(EMPTY)
    assert told.turn.status is Status.RUNNING

    ended = told.answered(EMPTY).turn

    assert isinstance(ended.state, WaitingForModel)
    assert ended.state.record.failure.type is FailureType.UNAVAILABLE
    assert told.turn.counters.model_attempts == 3
    assert list(told.transcript) == [0]


def test_an_empty_answer_costs_tokens_and_is_no_success() -> None:
    told = Told(an_agent(limits=Limits(max_iterations=1))).begun()

    told.answered(replace(EMPTY, usage=Usage(input_tokens=3))).answered(an_answer("hello"))

    assert told.turn.status is Status.COMPLETED
    assert told.turn.usage.input_tokens == 3
    assert told.turn.counters.model_successes == 1


def test_empty_answers_count_in_a_row() -> None:
    told = Told().begun().answered(EMPTY).answered(EMPTY)
    told.answered(an_answer("", a_call("A"))).finished("A")

    assert isinstance(told.answered(EMPTY).turn.state, CallingModel)


def test_whoever_retries_an_empty_answer_has_it_asked_again_as_often() -> None:
    told = Told().begun().answered(EMPTY).answered(EMPTY).answered(EMPTY)
    assert told.turn.current_failure is not None

    told.retried(told.turn.current_failure.failure_id).begun().answered(EMPTY)

    assert isinstance(told.turn.state, CallingModel)


def test_an_empty_answer_is_told_of_as_a_stop() -> None:
    told = Told().begun().answered(EMPTY)

    (stopped,) = (event for event in told.events if isinstance(event, e.ModelStopped))
    assert stopped.stop_reason is StopReason.END_TURN
    assert stopped.message is None
