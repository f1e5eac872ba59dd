"""Calls that wait for the user: the model's own question, and forms that a tool needs filled in."""

from dataclasses import replace

import pytest

from app.turn import inputs as i
from app.turn.actions import actions
from app.turn.agent import Limits
from app.turn.errors import Rejected
from app.turn.ids import CallId, MessageId
from app.turn.status import Status
from app.turn.transcript import ImagePart, Outcome, TextPart, ToolResult, UserMessage
from app.turn.waits import FormWait, InputNeeded, Unusable
from tests.support.calls_that_wait import asked_for
from tests.support.turns import (
    A_FORM,
    QUESTION,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
)

AN_IMAGE = UserMessage(message_id=MessageId("m2"), content=(ImagePart(url="https://x/y.png"),))


def the_model_asks(what: InputNeeded | None = None, *, strict: bool = False) -> Told:
    told = Told(an_agent(strict_forms=strict)).begun()
    told.says = {} if what is None else {"A": what}
    return told.answered(an_answer("", a_call("A", QUESTION), a_call("B"))).begun()


def a_tool_asks(*, strict: bool = False) -> Told:
    told = asked_for(a_call("A", WRITES), a_call("B"), agent=an_agent(strict_forms=strict))
    return told.finished("B").finished("A", needs=A_FORM)


def result_of(told: Told, position: int = 2) -> ToolResult:
    result = told.transcript[position]
    assert isinstance(result, ToolResult)
    return result


# --- The model asks (T43, T76, T77) --------------------------------------------------------------


def test_the_models_question_is_put_to_the_user_and_counts_as_no_call() -> None:
    told = the_model_asks(A_FORM)

    assert told.types == [
        "STEP_STARTED",
        "TOOL_INPUT_REQUESTED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
    ]
    assert told.turn.status is Status.WAITING_FOR_USER
    assert told.turn.waiting_calls[0].wait == FormWait(
        asked_by="model",
        form_key="address",
        schema=A_FORM.schema,
        title="Where to?",
        requested_at=told.at,
    )
    assert told.turn.counters.tool_calls == 0


def test_a_budget_of_calls_that_is_used_up_leaves_the_model_its_questions() -> None:
    told = asked_for(a_call("A"), agent=an_agent(limits=Limits(max_tool_calls=1))).finished("A")
    told.answered(an_answer("", a_call("B", QUESTION))).begun()

    assert told.turn.status is Status.WAITING_FOR_USER


def test_case_85_a_message_in_words_is_the_result_of_the_call_that_asks() -> None:
    told = the_model_asks().posted("Tokyo", "m2")

    assert told.types == ["TOOL_INPUT_RECEIVED", "TOOL_COMPLETED", "TURN_RESUMED"]
    assert (result_of(told).outcome, result_of(told).content) == (Outcome.COMPLETED, "Tokyo")
    assert not [m for m in told.transcript.values() if m == a_message("Tokyo", "m2")]
    assert told.begun().types == ["STEP_STARTED", "TOOL_STARTED"]


def test_case_85_words_are_never_checked_against_a_schema() -> None:
    assert result_of(the_model_asks(A_FORM).posted("to my office")).content == "to my office"


@pytest.mark.parametrize(
    "message",
    [AN_IMAGE, replace(AN_IMAGE, content=(TextPart(text="here"), *AN_IMAGE.content))],
    ids=["an image", "words and an image"],
)
def test_case_85_a_message_that_is_more_than_words_is_a_replan(message: UserMessage) -> None:
    told = the_model_asks().tell(i.PostMessage(message=message))

    assert told.types == ["TOOL_INTERRUPTED", "TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_RESUMED"]


def test_values_for_the_models_form_are_the_result_as_they_are() -> None:
    told = the_model_asks(A_FORM).filled_in("A", '{"city":"Tokyo"}')

    assert told.types == ["TOOL_INPUT_RECEIVED", "TOOL_COMPLETED", "TURN_RESUMED"]
    assert result_of(told).content == '{"city":"Tokyo"}'


def test_an_answer_in_words_may_leave_the_call_out() -> None:
    assert result_of(the_model_asks().said("Tokyo")).content == "Tokyo"
    assert result_of(the_model_asks().said("Tokyo", "A")).content == "Tokyo"


def test_replanning_is_never_an_answer() -> None:
    told = the_model_asks().tell(i.Replan(message=a_message("Tokyo", "m2")))

    assert told.types == ["TOOL_INTERRUPTED", "TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_RESUMED"]


def test_a_form_that_nobody_knows_is_an_error_for_the_model_and_no_wait() -> None:
    told = Told().begun()
    told.says = {"A": Unusable(content="There is no form 'adress'.")}
    told.answered(an_answer("", a_call("A", QUESTION))).begun()

    assert told.turn.status is Status.RUNNING
    assert (result_of(told).outcome, result_of(told).content) == (
        Outcome.ERROR,
        "There is no form 'adress'.",
    )


# --- A tool asks (T78 to T80) --------------------------------------------------------------------


def test_a_tool_that_was_answered_is_entered_again_from_the_top() -> None:
    told = a_tool_asks().filled_in("A", '{"city":"Tokyo"}')

    assert told.types == ["TOOL_INPUT_RECEIVED", "TURN_RESUMED"]
    assert told.begun().types == ["STEP_STARTED", "TOOL_STARTED"]
    (call,) = told.turn.open_calls
    assert (call.attempt, call.resumes, call.data) == (2, 1, ('{"city":"Tokyo"}',))


def test_case_101_all_that_was_filled_in_for_a_call_stays_in_its_order() -> None:
    told = a_tool_asks().filled_in("A", '{"city":"Tokyo"}').begun()
    told.finished("A", needs=A_FORM).filled_in("A", '{"zip":"100"}').begun()

    (call,) = told.turn.open_calls
    assert (call.attempt, call.resumes) == (3, 2)
    assert call.data == ('{"city":"Tokyo"}', '{"zip":"100"}')
    assert told.finished("A").turn.counters.tool_calls == 2  # with B


def test_case_86_a_message_gives_a_tools_form_up() -> None:
    told = a_tool_asks().posted("Tokyo")

    assert told.types == ["TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_RESUMED"]
    assert result_of(told).outcome is Outcome.SUPERSEDED


@pytest.mark.parametrize("told", [a_tool_asks(strict=True), the_model_asks(A_FORM, strict=True)])
def test_case_86_a_strict_form_is_not_given_up_by_a_message(told: Told) -> None:
    before = told.turn

    with pytest.raises(Rejected) as refusal:
        told.tell(i.PostMessage(message=AN_IMAGE))

    assert (refusal.value.code, told.turn) == ("wrong_command", before)
    assert told.tell(i.Replan(message=AN_IMAGE)).turn.open_calls == ()


def test_case_86_a_strict_form_is_not_given_up_by_a_message_that_would_steer() -> None:
    agent = an_agent(open_waits="together", strict_forms=True)
    told = asked_for(a_call("A", WRITES), a_call("B"), agent=agent).finished("A", needs=A_FORM)
    before = told.turn

    with pytest.raises(Rejected) as refusal:
        told.steered()

    assert (refusal.value.code, told.turn) == ("wrong_command", before)
    assert told.queued().turn.waiting_calls == before.waiting_calls
    steer = next(each for each in actions(before, at=told.at) if each.command == "STEER")
    assert (steer.enabled, steer.reason) == (False, "form_waits")


def test_the_answer_to_a_strict_question_is_no_giving_up() -> None:
    assert result_of(the_model_asks(strict=True).posted("Tokyo")).content == "Tokyo"


# --- What is no answer ---------------------------------------------------------------------------


def values(schema: str, call_id: str = "A") -> i.UserInput:
    data = i.FormData(values="{}", schema=schema)
    return i.UserInput(message=None, call_id=CallId(call_id), data=data)


SCHEMA = A_FORM.schema or ""
IN_WORDS = i.UserInput(message=a_message("Tokyo"), call_id=CallId("A"))
BOTH = replace(values(SCHEMA), message=a_message("Tokyo"))


@pytest.mark.parametrize(
    ("told", "given", "code"),
    [
        (a_tool_asks(), IN_WORDS, "payload_invalid"),  # T79
        (a_tool_asks(), BOTH, "payload_invalid"),
        (a_tool_asks(), values("{}"), "correlation_mismatch"),  # case 105: another schema
        (a_tool_asks(), values(SCHEMA, "B"), "correlation_mismatch"),
        (the_model_asks(), values(SCHEMA), "payload_invalid"),  # it asks in words
        (the_model_asks(A_FORM), BOTH, "payload_invalid"),  # one of them would be lost
        (the_model_asks(), i.UserInput(message=None), "payload_invalid"),
        (the_model_asks(), i.UserInput(message=a_message(" ")), "payload_invalid"),
        (the_model_asks(), i.UserInput(message=AN_IMAGE), "payload_invalid"),
    ],
)
def test_what_is_no_answer_changes_nothing(told: Told, given: i.UserInput, code: str) -> None:
    before = told.turn

    with pytest.raises(Rejected) as refusal:
        told.tell(given)

    assert (refusal.value.code, told.turn) == (code, before)


def test_an_approval_is_no_answer_to_a_form() -> None:
    with pytest.raises(Rejected) as refusal:
        a_tool_asks().approved("A")

    assert refusal.value.code == "wrong_command"
