"""Turns that wait for a person, or for somebody outside."""

from datetime import timedelta

import pytest

from app.turn import inputs as i
from app.turn.agent import Limits
from app.turn.errors import Rejected, WrongCommand
from app.turn.events import ModelStopped, TurnResumed
from app.turn.ids import ActorId, CallId, FailureId
from app.turn.states import Failed, WaitingForUser
from app.turn.status import Status
from app.turn.transcript import Outcome, QuestionMessage, ToolResult
from tests.support.turns import (
    FLAKY,
    QUOTA,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
)

ON_CALLS: list[i.CallCommand] = [
    i.ApproveTool(call_id=CallId("A"), actor_id=ActorId("amy")),
    i.RejectTool(call_id=CallId("A"), actor_id=ActorId("amy"), reason="too dear"),
    i.GiveToolResult(call_id=CallId("A"), output='"done"'),
    i.GiveToolError(call_id=CallId("A"), code="gone", message="It is not there."),
]


@pytest.mark.parametrize("given", ON_CALLS, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize(
    ("told", "code"),
    [
        (Told(), "turn_not_blocked"),
        (Told().begun(), "turn_not_blocked"),
        (Told().begun().gave_up(QUOTA), "wrong_command"),  # case 19
        (Told().begun().paused(), "wrong_command"),
        (Told().begun().answered(an_answer("done")), "turn_terminal"),
    ],
    ids=lambda told: told.turn.status if isinstance(told, Told) else told,
)
def test_a_command_on_a_call_is_refused_by_the_state_and_changes_nothing(
    told: Told, code: str, given: i.CallCommand
) -> None:
    before = told.turn

    with pytest.raises(Rejected) as refusal:
        told.tell(given)

    assert refusal.value.code == code
    assert told.turn == before


# --- Plain questions -----------------------------------------------------------------------------


def asked_by_a_tool() -> Told:
    told = Told().begun().answered(an_answer("", a_call("A")))
    return told.finished("A", question="where to?")


def test_a_tool_that_asks_has_its_result_and_the_turn_waits_instead_of_calling_the_model() -> None:
    told = asked_by_a_tool()

    assert told.types == ["TOOL_COMPLETED", "STEP_COMPLETED", "MESSAGE_ADDED", "TURN_SUSPENDED"]
    assert told.turn.state == WaitingForUser(question="where to?", requested_at=told.at)
    result, question = told.transcript[2], told.transcript[3]
    assert isinstance(result, ToolResult)
    assert result.outcome is Outcome.COMPLETED
    assert result.content == (
        "The user has been asked: where to? Their answer follows as a message."
    )
    assert question == QuestionMessage(text="where to?")


def test_the_rest_of_the_round_goes_on_and_all_questions_are_asked_together() -> None:
    told = Told(an_agent(limits=Limits(parallel_tools=1))).begun()
    told.answered(an_answer("", a_call("A"), a_call("B", WRITES), a_call("C")))

    told.finished("A", question="where to?")
    assert told.types == ["TOOL_COMPLETED", "TOOL_STARTED"]
    told.finished("B").finished("C", question="when?")

    assert told.turn.state == WaitingForUser(question="where to?\nwhen?", requested_at=told.at)
    assert not told.turn.questions


def test_case_83_a_message_is_the_answer_and_interrupts_nothing() -> None:
    told = asked_by_a_tool().later(minutes=5).posted("Tokyo", "m2")

    assert told.types == ["MESSAGE_ADDED", "TURN_RESUMED"]
    assert told.transcript[4] == a_message("Tokyo", "m2")
    assert told.turn.status is Status.RUNNING
    assert told.turn.waited == timedelta(minutes=5)
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


def test_case_83_an_answer_to_a_question_asked_before_a_tool_leaves_the_tool_due() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", FLAKY)))
    told.finished("A", outcome=Outcome.ERROR).later(minutes=2).asked()
    assert told.types == ["TURN_RESUMED", "MESSAGE_ADDED", "TURN_SUSPENDED"]

    told.posted("Tokyo").begun()

    assert told.types == ["STEP_STARTED", "TOOL_STARTED"]
    assert [call.attempt for call in told.turn.open_calls] == [2]


def test_case_84_replanning_closes_what_is_open_and_is_no_answer() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", FLAKY)))
    told.finished("A", outcome=Outcome.ERROR).later(minutes=2).asked()

    told.tell(i.Replan(message=a_message("Tokyo", "m2")))

    assert told.types == ["TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_RESUMED"]
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (i.UserInput(message=None), "payload_invalid"),  # case 90
        (
            i.UserInput(message=a_message("x"), data=i.FormData(values="{}", schema="{}")),
            "payload_invalid",
        ),
        (i.UserInput(message=a_message("x"), call_id=CallId("A")), "correlation_mismatch"),
        (i.Pause(), "wrong_command"),
        (i.Resume(), "wrong_command"),
        (i.Retry(), "wrong_command"),
        (i.ContinueNow(), "wrong_command"),
        (i.RetryModel(failure_id=FailureId("f1")), "wrong_command"),
    ],
)
def test_what_is_no_answer_changes_nothing(given: i.Request, code: str) -> None:
    told = asked_by_a_tool()
    before = told.turn

    with pytest.raises(Rejected) as refusal:
        told.tell(given)

    assert refusal.value.code == code
    assert told.turn == before


def test_a_given_answer_is_a_message_under_its_own_command() -> None:
    told = asked_by_a_tool().tell(i.UserInput(message=a_message("Tokyo", "m9")))

    resumed = told.last[-1]
    assert isinstance(resumed, TurnResumed)
    assert (resumed.command_type, resumed.correlation_id) == ("USER_INPUT", "m9")


def test_only_a_turn_that_asks_takes_input() -> None:
    with pytest.raises(WrongCommand):
        Told().begun().gave_up(QUOTA).tell(i.UserInput(message=a_message("Tokyo")))


def test_a_cancelled_question_closes_the_history() -> None:
    told = asked_by_a_tool().cancelled()

    assert told.types == ["MESSAGE_ADDED", "TURN_CANCELLED"]


def test_a_pause_before_the_question_keeps_it_for_later() -> None:
    told = Told().begun().answered(an_answer("", a_call("A"), a_call("B")))
    told.finished("A", question="where to?").paused().finished("B")
    assert told.turn.status is Status.PAUSED

    told.resumed().begun()

    assert told.turn.state == WaitingForUser(question="where to?", requested_at=told.at)


def test_what_the_user_says_meanwhile_takes_the_place_of_the_question() -> None:
    told = Told().begun().answered(an_answer("", a_call("A"), a_call("B")))
    told.finished("A", question="where to?").paused().finished("B")

    told.posted("To Tokyo, by the way").begun()

    assert told.types == ["STEP_STARTED", "MODEL_STARTED"]


def test_a_worker_that_dies_before_the_question_is_asked_loses_none() -> None:
    told = Told().begun().answered(an_answer("", a_call("A"), a_call("B", WRITES)))
    told.finished("A", question="where to?").lost()

    assert told.turn.state == WaitingForUser(question="where to?", requested_at=told.at)


def test_nobody_is_asked_what_no_model_will_hear() -> None:
    told = Told(an_agent(limits=Limits(max_iterations=1)))
    told.begun().answered(an_answer("", a_call("A"))).finished("A", question="where to?")

    assert told.turn.status is Status.MAX_ITERATIONS_REACHED


# --- Hooks that ask ------------------------------------------------------------------------------


def test_a_hook_that_asks_before_the_first_step_makes_the_turn_wait_there() -> None:
    told = Told().asked(heard=1)

    assert told.types == ["MESSAGE_ADDED", "TURN_SUSPENDED"]
    assert told.turn.counters.steps == 0
    assert told.turn.unread == ()
    assert told.posted("Tokyo").turn.unread == (2,)


def test_a_message_that_the_asking_hook_has_not_seen_stays_unread() -> None:
    told = Told().asked().posted("Tokyo")

    assert told.turn.unread == (0, 2)
    assert told.begun().turn.unread == ()


def test_a_hook_that_asks_before_the_model_ends_the_step_it_was_in() -> None:
    told = Told().begun().asked()

    assert told.types == ["STEP_COMPLETED", "MESSAGE_ADDED", "TURN_SUSPENDED"]
    assert (told.turn.counters.model_attempts, told.turn.counters.model_successes) == (1, 0)


def test_a_hook_that_asks_behind_an_answer_keeps_its_text_and_runs_none_of_its_calls() -> None:
    told = Told().begun()
    told.tell(
        i.ModelAnswered(
            attempt_id=told.attempt,
            answer=an_answer("I book it.", a_call("A", WRITES)),
            next_attempt_id=told.draw(),
            failure_id=FailureId("f1"),
            question="sure?",
        )
    )

    assert told.types == [
        "MODEL_TEXT",
        "MODEL_COMPLETED",
        "MODEL_STOPPED",
        "STEP_COMPLETED",
        "MESSAGE_ADDED",
        "TURN_SUSPENDED",
    ]
    stopped = told.last[2]
    assert isinstance(stopped, ModelStopped)
    assert stopped.withheld_tools == ("pay",)
    assert told.turn.counters.model_successes == 1
    assert told.turn.open_calls == ()


@pytest.mark.parametrize("told", [Told().begun().gave_up(QUOTA), Told().begun().paused()])
def test_a_hook_that_asks_too_late_changes_nothing(told: Told) -> None:
    assert told.asked().last == ()


def test_stopping_wins_over_a_question() -> None:
    running = Told().begun().answered(an_answer("", a_call("A")))
    running.tell(i.StepLost(attempt_id=running.attempt, next_attempt_id=None))
    assert running.types == ["STEP_RECOVERED"]

    assert running.copy().cancelled().asked().turn.status is Status.CANCELLED
    assert Told().begun().cancelled().asked().turn.status is Status.CANCELLED


def test_a_hook_that_fails_before_a_step_fails_the_turn_and_closes_its_history() -> None:
    told = Told().tell(i.StepCrashed(attempt_id=None, reason="hook_failed"))

    assert told.types == ["MESSAGE_ADDED", "TURN_FAILED"]
    assert told.turn.state == Failed(reason="hook_failed")


def test_a_hook_that_fails_too_late_changes_nothing() -> None:
    told = Told().begun().gave_up(QUOTA)

    assert told.tell(i.StepCrashed(attempt_id=None, reason="hook_failed")).last == ()
