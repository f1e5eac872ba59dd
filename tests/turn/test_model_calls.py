"""The end of a model call."""

from dataclasses import replace

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Limits, RetryPolicy
from app.turn.failures import FailureType, TokenLimitPhase
from app.turn.states import CallingModel, Completed, Failed, RunningTools, WaitingForModel
from app.turn.status import Status
from app.turn.transcript import AssistantMessage, StopReason, ToolResult
from tests.support.turns import (
    OVERLOADED,
    QUOTA,
    WRITES,
    Told,
    a_call,
    an_agent,
    an_answer,
)


def test_a_final_answer_is_stored_and_completes_the_turn() -> None:
    told = Told().begun().answered(an_answer("hello"))

    assert told.turn.state == Completed(stop_reason=StopReason.END_TURN, position=1)
    assert told.transcript[1] == AssistantMessage(text="hello")
    assert told.types == ["MODEL_TEXT", "MODEL_COMPLETED", "STEP_COMPLETED", "TURN_COMPLETED"]


def test_the_end_of_a_call_and_the_beginning_of_its_tools_are_one_commit() -> None:
    told = Told().begun().answered(an_answer("", a_call("A"), a_call("B", WRITES)))

    assert told.types == [
        "MODEL_COMPLETED",
        "TOOL_REQUESTED",
        "TOOL_REQUESTED",
        "STEP_COMPLETED",
        "STEP_STARTED",
        "TOOL_STARTED",
        "TOOL_STARTED",
    ]
    assert isinstance(told.turn.state, RunningTools)


def test_stored_text_is_never_stored_twice() -> None:
    told = Told().begun().wrote("one ").wrote("one two ").answered(an_answer("one two three"))

    texts = [event for event in told.events if isinstance(event, e.ModelText)]
    assert [(text.offset, text.text) for text in texts] == [(0, "one "), (4, "two "), (8, "three")]


def test_text_that_brings_nothing_new_is_no_event() -> None:
    told = Told().begun().wrote("one").wrote("one")

    assert told.last == ()


def test_offsets_count_code_points() -> None:
    told = Told().begun().wrote("a\N{GRINNING FACE}").wrote("a\N{GRINNING FACE}b")

    assert isinstance(told.turn.state, CallingModel)
    assert told.turn.state.text_stored == 3


def test_an_exhausted_quota_parks_the_turn_at_once_with_a_failure_id() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=3))).begun().gave_up(QUOTA)

    assert isinstance(told.turn.state, WaitingForModel)
    assert told.turn.state.record.failure_id == "f1"
    assert told.types == ["MODEL_FAILED", "STEP_COMPLETED", "TURN_SUSPENDED"]


def test_case_36_a_constant_failure_is_retried_as_often_as_allowed_and_then_waits() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=2)))

    statuses: list[Status] = []
    for n in range(3):
        told.begun().gave_up(OVERLOADED, failure_id=f"f{n}").later(minutes=2)
        statuses.append(told.turn.status)

    assert statuses == ["RETRY_SCHEDULED", "RETRY_SCHEDULED", "WAITING_FOR_MODEL"]
    assert told.turn.counters.model_failures == 3
    assert told.turn.counters.retries == 2


def test_case_39_a_success_gives_the_next_chain_of_failures_its_own_retries() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=1)))
    told.begun().gave_up(OVERLOADED).later(minutes=2)
    told.begun().answered(an_answer("", a_call("A"))).finished("A")

    told.gave_up(OVERLOADED, failure_id="f2")

    assert told.turn.status == Status.RETRY_SCHEDULED


def test_case_140_suspended_comes_after_the_step_and_before_the_scheduled_retry() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=1))).begun().gave_up(OVERLOADED)

    assert told.types == ["MODEL_FAILED", "STEP_COMPLETED", "TURN_SUSPENDED", "RETRY_SCHEDULED"]


def test_a_failure_after_output_is_never_retried_by_itself() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=3))).begun()

    told.gave_up(OVERLOADED, text="Once upon")

    assert told.turn.status == Status.WAITING_FOR_MODEL


def test_case_27_half_an_answer_is_shown_and_is_no_answer() -> None:
    told = Told().begun().gave_up(OVERLOADED, text="Once upon")

    assert told.types[:3] == ["MODEL_TEXT", "MODEL_FAILED", "MODEL_STOPPED"]
    assert [message.text for message in told.partial] == ["Once upon"]
    assert told.turn.status is Status.WAITING_FOR_MODEL


def test_case_30_calls_of_a_refused_answer_are_withheld_and_their_names_told() -> None:
    told = Told().begun().answered(an_answer("No.", a_call("A"), stop=StopReason.REFUSAL))

    assert told.turn.state == Completed(stop_reason=StopReason.REFUSAL, position=1)
    stopped = [event for event in told.events if isinstance(event, e.ModelStopped)]
    assert stopped[0].withheld_tools == ("look_up",)
    assert told.turn.open_calls == ()


def test_an_answer_that_was_cut_keeps_its_text() -> None:
    told = Told().begun().answered(an_answer("Half of", stop=StopReason.MAX_OUTPUT))

    assert told.turn.state == Completed(stop_reason=StopReason.MAX_OUTPUT, position=1)


@pytest.mark.parametrize(
    ("stop", "phase"),
    [
        (StopReason.MAX_OUTPUT, TokenLimitPhase.OUTPUT),
        (StopReason.CONTEXT_FULL, TokenLimitPhase.TOTAL_CONTEXT),
    ],
)
def test_a_limit_that_leaves_nothing_usable_is_a_token_limit(
    stop: StopReason, phase: TokenLimitPhase
) -> None:
    told = Told().begun().answered(an_answer(" \n", stop=stop))

    failure = told.turn.current_failure
    assert failure is not None
    assert failure.failure.type is FailureType.TOKEN_LIMIT_EXCEEDED
    assert failure.failure.token_limit_phase is phase


def test_an_answer_that_is_none_says_who_gave_it() -> None:
    cut = an_answer(" ", stop=StopReason.MAX_OUTPUT)
    told = Told().begun().answered(replace(cut, provider="openai", model="gpt-5.1"))

    failure = told.turn.current_failure
    assert failure is not None
    assert (failure.failure.provider, failure.failure.model) == ("openai", "gpt-5.1")


def test_case_24_a_fault_of_ours_fails_the_turn_and_closes_its_history() -> None:
    told = Told().begun()

    told.tell(i.StepCrashed(attempt_id=told.attempt))

    assert told.turn.state == Failed(reason="internal_error")
    assert told.types == ["STEP_COMPLETED", "MESSAGE_ADDED", "TURN_FAILED"]


def test_a_request_that_is_wrong_fails_the_turn() -> None:
    told = Told().begun().refused()

    assert told.turn.state == Failed(reason="request_refused")


def test_a_call_of_an_unknown_tool_gets_an_error_and_the_others_run() -> None:
    unknown = a_call("B")
    answer = an_answer(
        "",
        a_call("A"),
        unknown.__class__(call_id=unknown.call_id, tool_name="nonsense", arguments="{}"),
    )

    told = Told().begun().answered(answer)

    result = told.transcript[3]
    assert isinstance(result, ToolResult)
    assert "nonsense" in result.content
    assert [call.call_id for call in told.turn.open_calls] == ["A"]


def test_arguments_that_cannot_be_used_are_answered_and_the_model_is_asked_again() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", WRITES, problem="cut off")))

    assert told.types[-2:] == ["STEP_STARTED", "MODEL_STARTED"]
    assert told.turn.counters.tool_calls == 0


def test_case_89_call_ids_that_are_missing_repeated_or_taken_are_replaced() -> None:
    answer = an_answer("", a_call(""), a_call("X"), a_call("X"), a_call("old"))

    told = Told().begun().answered(answer, taken=frozenset({"old"}))

    assert [call.call_id for call in told.turn.open_calls] == ["a1-0", "X", "a1-2", "a1-3"]


def test_case_114_the_call_beyond_max_iterations_is_not_sent() -> None:
    told = Told(an_agent(limits=Limits(max_iterations=2)))

    told.begun().answered(an_answer("", a_call("A"))).finished("A")
    told.answered(an_answer("", a_call("B"))).finished("B")

    assert told.turn.status == Status.MAX_ITERATIONS_REACHED
    assert told.types[-2:] == ["MESSAGE_ADDED", "MAX_ITERATIONS_REACHED"]


def test_case_113_failures_do_not_count_as_iterations() -> None:
    told = Told(an_agent(limits=Limits(max_iterations=1))).begun().gave_up(QUOTA).retried()

    told.begun().answered(an_answer("done"))

    assert told.turn.status == Status.COMPLETED


def test_case_115_remaining_iterations_count_successes_only() -> None:
    told = Told(an_agent(limits=Limits(max_iterations=5))).begun().gave_up(QUOTA).retried().begun()

    started = [event for event in told.events if isinstance(event, e.ModelStarted)]
    assert [event.remaining_iterations for event in started] == [5, 5]
    assert [event.model_attempt for event in started] == [1, 2]


def test_the_step_beyond_max_steps_is_not_begun() -> None:
    told = Told(an_agent(limits=Limits(max_steps=1))).begun().answered(an_answer("", a_call("A")))

    assert told.turn.status == Status.MAX_STEPS_REACHED
    assert isinstance(told.transcript[2], ToolResult)


@pytest.mark.parametrize(
    ("invented", "stored"),
    [
        ("", "unnamed"),
        ("functions.look_up", "functions_look_up"),
        ("look_up ", "look_up_"),
        ("na\u00efve", "na_ve"),
        ("x" * 100, "x" * 64),
    ],
)
def test_a_name_that_no_tool_can_have_is_answered_and_stored_so_that_it_can_be_sent(
    invented: str, stored: str
) -> None:
    call = replace(a_call("A"), tool_name=invented)

    told = Told().begun().answered(an_answer("", call))

    asked, result = told.transcript[1], told.transcript[2]
    assert isinstance(asked, AssistantMessage)
    assert isinstance(result, ToolResult)
    assert asked.tool_calls[0].tool_name == stored
    assert result.content == f"There is no tool named {invented!r}."
    assert told.turn.counters.tool_calls == 0
