"""Text of an answer that was begun and not completed."""

from dataclasses import replace

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import RetryPolicy
from app.turn.failures import FailureType, TokenLimitPhase
from app.turn.ids import FailureId
from app.turn.resume_point import NotResumable, Resumable, of_active, of_ended
from app.turn.states import Completed, Failed, Paused, WaitingForModel
from app.turn.status import Status
from app.turn.transcript import (
    UNFINISHED,
    AssistantMessage,
    MessageError,
    NoticeMessage,
    StopReason,
)
from tests.support.turns import OVERLOADED, QUOTA, Told, a_call, an_agent, an_answer


def dropping() -> Told:
    return Told(replace(an_agent(), partial_output="drop"))


def kinds(told: Told) -> list[str]:
    """The transcript in short: its roles, partial answers told from answers."""
    said = (told.transcript[place] for place in sorted(told.transcript))
    return ["partial" if isinstance(m, AssistantMessage) and m.is_partial else m.role for m in said]


def recovered(told: Told) -> list[e.StepRecovered]:
    return [event for event in told.events if isinstance(event, e.StepRecovered)]


def test_what_came_of_an_answer_that_broke_is_kept_as_a_partial_message() -> None:
    told = Told().begun().wrote("Once ").gave_up(OVERLOADED, text="Once upon")

    assert told.partial == [
        AssistantMessage(
            text="Once upon",
            stop_reason=StopReason.INTERRUPTED,
            error=MessageError(
                reason="OVERLOADED",
                message="The model's answer broke off before its end.",
                failure_id=FailureId("f1"),
            ),
        )
    ]


def test_a_partial_message_is_told_of_behind_its_failure_and_with_its_place() -> None:
    told = Told().begun().gave_up(OVERLOADED, text="Once upon")

    assert told.types == [
        "MODEL_TEXT",
        "MODEL_FAILED",
        "MODEL_STOPPED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
    ]
    (stopped,) = (event for event in told.events if isinstance(event, e.ModelStopped))
    assert (stopped.stop_reason, stopped.position) == (StopReason.INTERRUPTED, 1)


def test_an_answer_follows_a_partial_message_and_takes_nothing_from_it() -> None:
    told = Told().begun().gave_up(OVERLOADED, text="Once").retried().begun()

    told.answered(an_answer("Once upon a time"))

    assert kinds(told) == ["user", "partial", "notice", "assistant"]
    assert told.turn.state == Completed(stop_reason=StopReason.END_TURN, position=3)


@pytest.mark.parametrize("text", ["", " ", "\n\t \n"])
def test_scenario_007_blank_text_is_never_kept_and_nothing_is_said_of_it(text: str) -> None:
    told = Told().begun().gave_up(OVERLOADED, text=text).retried()

    assert kinds(told) == ["user"]
    assert told.types == ["TURN_RESUMED"]


def test_an_agent_may_want_partial_text_dropped() -> None:
    told = dropping().begun().gave_up(OVERLOADED, text="Once").retried()

    assert kinds(told) == ["user"]
    assert told.types == ["TURN_RESUMED"]


def test_calls_of_an_answer_that_broke_are_withheld_and_their_names_listed() -> None:
    broke = replace(OVERLOADED, withheld_tools=("look_up", "pay"))

    told = Told().begun().gave_up(broke)

    (stopped,) = (event for event in told.events if isinstance(event, e.ModelStopped))
    assert stopped.withheld_tools == ("look_up", "pay")
    assert told.turn.open_calls == ()
    assert kinds(told) == ["user"]


def test_an_answer_that_its_model_broke_off_is_no_answer() -> None:
    answer = an_answer("Let me ", a_call("A"), stop=StopReason.INTERRUPTED)

    told = Told(an_agent(retry=RetryPolicy(max_retries=3))).begun().answered(answer)

    assert isinstance(told.turn.state, WaitingForModel)
    assert told.turn.state.record.failure.type is FailureType.UNAVAILABLE
    assert told.partial[0].tool_calls == ()
    (stopped,) = (event for event in told.events if isinstance(event, e.ModelStopped))
    assert stopped.withheld_tools == ("look_up",)


def test_one_that_was_broken_off_before_any_text_is_tried_again_like_any_failure() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=1))).begun()

    assert told.answered(an_answer("", stop=StopReason.INTERRUPTED)).turn.status is (
        Status.RETRY_SCHEDULED
    )


def test_an_answer_that_has_filled_the_window_is_partial_and_a_token_limit() -> None:
    told = Told().begun().answered(an_answer("Half of", stop=StopReason.CONTEXT_FULL))

    assert isinstance(told.turn.state, WaitingForModel)
    assert told.turn.state.record.failure.token_limit_phase is TokenLimitPhase.TOTAL_CONTEXT
    assert [message.text for message in told.partial] == ["Half of"]


# --- A pause --------------------------------------------------------------------------------------


def test_a_pause_stores_what_readers_have_seen_of_the_answer() -> None:
    told = Told().begun().wrote("Once ").paused(unseen="upon")

    assert told.types == [
        "PAUSE_REQUESTED",
        "MODEL_TEXT",
        "MODEL_STOPPED",
        "STEP_COMPLETED",
        "TURN_PAUSED",
    ]
    assert [(m.text, m.error) for m in told.partial] == [("Once upon", UNFINISHED)]
    assert told.turn.status is Status.PAUSED


def test_a_pause_waits_for_the_worker_that_has_the_rest_of_the_answer() -> None:
    told = Told().begun().wrote("Once").tell(i.Pause())

    assert told.types == ["PAUSE_REQUESTED"]
    assert told.turn.status is Status.RUNNING
    assert told.tell(i.Pause()).last == ()


def test_a_step_that_nobody_wants_stopped_is_not_dropped() -> None:
    told = Told().begun()

    assert told.tell(i.StepAbandoned(attempt_id=told.attempt)).last == ()


def test_a_pause_of_a_turn_whose_worker_is_gone_comes_when_it_is_found_lost() -> None:
    told = Told().begun().wrote("Once").tell(i.Pause()).lost()

    assert isinstance(told.turn.state, Paused)
    assert kinds(told) == ["user", "partial"]
    assert told.resumed().types == ["MESSAGE_ADDED", "TURN_RESUMED"]


def test_a_paused_turn_with_text_says_that_it_begins_the_answer_again() -> None:
    told = Told().begun().wrote("Once").paused()

    assert of_active(told.turn, an_agent(), is_lost=False) == Resumable(kind="RETRY_RESPONSE")
    told.resumed()
    assert kinds(told) == ["user", "partial", "notice"]


def test_one_that_was_paused_before_its_first_word_says_nothing() -> None:
    told = Told().begun().paused()

    assert of_active(told.turn, an_agent(), is_lost=False) == Resumable(kind="CALL_MODEL")
    assert told.resumed().types == ["TURN_RESUMED"]


def test_a_message_follows_a_partial_answer_without_a_notice() -> None:
    told = Told().begun().wrote("Once").paused().posted()

    assert kinds(told) == ["user", "partial", "user"]


def test_a_cancelled_answer_is_dropped() -> None:
    told = Told().begun().wrote("Once").cancelled()

    told.tell(i.StepAbandoned(attempt_id=told.attempt, text="Once upon"))

    assert kinds(told) == ["user", "closing"]
    assert told.turn.status is Status.CANCELLED


# --- A death --------------------------------------------------------------------------------------


def test_the_answer_of_a_lost_worker_is_closed_and_the_model_told_to_begin_again() -> None:
    told = Told().begun().wrote("Once ").wrote("Once upon").lost()

    assert told.types == [
        "STEP_RECOVERED",
        "MODEL_STOPPED",
        "MESSAGE_ADDED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]
    assert [(m.text, m.error) for m in told.partial] == [("Once upon", UNFINISHED)]
    notice = told.transcript[2]
    assert isinstance(notice, NoticeMessage)
    assert notice.cause == "retry_response"


def test_case_72_an_answer_that_has_an_error_keeps_it_when_it_is_resumed() -> None:
    told = Told().begun().gave_up(QUOTA, text="Once")
    (before,) = told.partial

    told.retried().begun().lost()

    assert told.partial == [before]
    assert before.error is not None
    assert before.error.reason == "QUOTA_EXCEEDED"


def test_case_71_a_recovery_that_is_lost_itself_says_nothing_twice() -> None:
    told = Told().begun().wrote("Once").lost().lost().lost()

    assert kinds(told) == ["user", "partial", "notice"]


def test_case_71_each_half_has_its_own_notice() -> None:
    told = Told().begun().wrote("Once").lost().wrote("Once upon").lost()

    assert kinds(told) == ["user", "partial", "notice", "partial", "notice"]


def test_a_reader_discards_what_is_not_stored_of_a_lost_answer() -> None:
    assert recovered(Told().begun().wrote("Once").lost())[0].discard_from == 4


def test_a_reader_discards_all_of_it_where_nothing_is_kept() -> None:
    assert recovered(dropping().begun().wrote("Once").lost())[0].discard_from == 0
    assert recovered(Told().begun().wrote(" \n").lost())[0].discard_from == 0


def test_a_turn_that_is_to_end_keeps_nothing_of_a_lost_answer() -> None:
    told = Told().begun().wrote("Once").cancelled().lost()

    assert recovered(told)[0].discard_from == 0
    assert kinds(told) == ["user", "closing"]
    assert told.turn.status is Status.CANCELLED


def test_what_hooks_are_to_hear_first_comes_behind_the_notice() -> None:
    told = Told().begun().wrote("Once")
    text, _ = told.written

    told.tell(i.StepLost(attempt_id=told.attempt, next_attempt_id=None, text=text))

    assert kinds(told) == ["user", "partial", "notice"]
    assert told.turn.attempt_in_flight is None


# --- Requests that are wrong, and faults ----------------------------------------------------------


def test_a_request_that_is_refused_in_mid_answer_fails_the_turn_and_keeps_the_text() -> None:
    told = Told().begun().refused(text="Once upon")

    assert told.turn.state == Failed(reason="request_refused")
    assert kinds(told) == ["user", "partial", "closing"]
    assert isinstance(of_ended(told.turn, list(told.transcript.values())), Resumable)


def test_a_fault_of_ours_in_mid_answer_keeps_the_text() -> None:
    told = Told().begun().wrote("Once")

    told.tell(i.StepCrashed(attempt_id=told.attempt, text="Once upon"))

    assert told.turn.state == Failed(reason="internal_error")
    assert [message.text for message in told.partial] == ["Once upon"]


def test_an_agent_may_wait_for_a_request_to_be_changed() -> None:
    agent = replace(an_agent(retry=RetryPolicy(max_retries=3)), on_invalid_request="wait")

    told = Told(agent).begun().refused()

    assert isinstance(told.turn.state, WaitingForModel)
    assert told.turn.state.record.failure.type is FailureType.UNAVAILABLE
    assert not told.turn.state.record.failure.retryable
    assert told.retried().turn.status is Status.RUNNING


# --- What has ended, and is not gone on with ------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "reason"),
    [(StopReason.REFUSAL, "refused"), (StopReason.OTHER, "unknown_stop")],
)
@pytest.mark.parametrize("text", ["No.", ""])
def test_an_end_that_no_resume_goes_on_from(stop: StopReason, reason: str, text: str) -> None:
    told = Told().begun().answered(an_answer(text, stop=stop))

    assert told.turn.status is Status.COMPLETED
    point = of_ended(told.turn, list(told.transcript.values()))
    assert isinstance(point, NotResumable)
    assert point.reason == reason
    assert "MODEL_STOPPED" in told.types
