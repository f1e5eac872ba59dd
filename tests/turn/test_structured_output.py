"""Final answers of agents that declare an output type: read, repaired once, or the end (C26)."""

from datetime import timedelta

import pytest

from app.turn import inputs as i
from app.turn.agent import Limits, RetryPolicy
from app.turn.states import CallingModel, Completed, Failed
from app.turn.status import Status
from app.turn.transcript import (
    AssistantMessage,
    ClosingMessage,
    NoticeMessage,
    StopReason,
    UserMessage,
)
from tests.support.turns import FITS, MISFITS, OVERLOADED, QUOTA, Told, a_call, an_agent, an_answer

GOOD, BAD = an_answer('{"total":3}'), an_answer("about three")


def misfit(told: Told) -> Told:
    return told.answered(BAD, output=MISFITS)


def kinds(told: Told) -> list[type]:
    return [type(told.transcript[place]) for place in sorted(told.transcript)]


def test_an_answer_that_fits_gives_its_value_before_the_turn_completes() -> None:
    told = Told().begun().answered(GOOD, output=FITS)

    assert told.types == [
        "MODEL_TEXT",
        "MODEL_COMPLETED",
        "OUTPUT_READY",
        "STEP_COMPLETED",
        "TURN_COMPLETED",
    ]
    assert told.turn.output == '{"total":3}'
    assert told.turn.state == Completed(stop_reason=StopReason.END_TURN, position=1)


def test_an_answer_that_does_not_fit_is_kept_and_asked_for_once_more_in_one_commit() -> None:
    told = misfit(Told().begun())

    assert told.types == [
        "MODEL_TEXT",
        "MODEL_COMPLETED",
        "STEP_COMPLETED",
        "MESSAGE_ADDED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]
    assert kinds(told) == [UserMessage, AssistantMessage, NoticeMessage]
    notice = told.transcript[2]
    assert isinstance(notice, NoticeMessage)
    assert MISFITS.problem in notice.text
    assert isinstance(told.turn.state, CallingModel)


def test_the_repaired_answer_completes_the_turn() -> None:
    told = misfit(Told().begun()).answered(GOOD, output=FITS)

    assert told.turn.output == FITS.value
    assert told.turn.state == Completed(stop_reason=StopReason.END_TURN, position=3)


def test_a_second_answer_that_does_not_fit_fails_the_turn() -> None:
    told = misfit(misfit(Told().begun()))

    assert told.turn.state == Failed(reason="output_invalid")
    assert told.types[-3:] == ["STEP_COMPLETED", "MESSAGE_ADDED", "TURN_FAILED"]
    assert kinds(told) == [
        UserMessage,
        AssistantMessage,
        NoticeMessage,
        AssistantMessage,
        ClosingMessage,
    ]
    assert told.turn.output is None


def test_tools_may_be_used_for_the_repair_and_do_not_give_another_one() -> None:
    told = misfit(Told().begun()).answered(an_answer("", a_call("A"))).finished("A")

    assert misfit(told).turn.state == Failed(reason="output_invalid")


def test_what_is_no_final_answer_is_not_read() -> None:
    for stop in (StopReason.REFUSAL, StopReason.MAX_OUTPUT, StopReason.OTHER):
        assert not an_answer("{", stop=stop).is_final
    assert not an_answer("{}", a_call("A")).is_final
    assert an_answer("{}", stop=StopReason.TOOL_USE).is_final


def test_a_crash_before_the_commit_leaves_a_partial_message_and_no_answer() -> None:
    told = Told().begun().wrote("about").lost()

    assert kinds(told) == [UserMessage, AssistantMessage, NoticeMessage]
    assert [message.text for message in told.partial] == ["about"]
    assert misfit(told).turn.is_repaired


def test_a_crash_in_the_repair_calls_the_model_again_and_says_nothing_twice() -> None:
    told = misfit(Told().begun()).lost().lost()

    assert kinds(told) == [UserMessage, AssistantMessage, NoticeMessage]
    assert isinstance(told.turn.state, CallingModel)
    assert misfit(told).turn.state == Failed(reason="output_invalid")


def test_a_failure_of_the_model_in_the_repair_waits_as_ever() -> None:
    told = misfit(Told().begun()).gave_up(QUOTA)
    assert told.turn.status is Status.WAITING_FOR_MODEL

    told.retried().begun().answered(GOOD, output=FITS)

    assert told.turn.output == FITS.value
    assert kinds(told) == [UserMessage, AssistantMessage, NoticeMessage, AssistantMessage]


def test_a_failure_of_the_model_in_the_repair_is_retried_as_ever() -> None:
    told = misfit(Told(an_agent(retry=RetryPolicy(max_retries=1))).begun()).gave_up(OVERLOADED)
    assert told.turn.status is Status.RETRY_SCHEDULED

    assert told.later(minutes=2).begun().answered(GOOD, output=FITS).turn.output == FITS.value


def test_a_message_while_the_repair_waits_stands_behind_the_notice() -> None:
    told = misfit(Told().begun()).gave_up(QUOTA).posted("in words, then").begun()

    assert kinds(told) == [UserMessage, AssistantMessage, NoticeMessage, UserMessage]
    assert misfit(told).turn.state == Failed(reason="output_invalid")


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (Limits(max_iterations=1), Status.MAX_ITERATIONS_REACHED),
        (Limits(max_steps=1), Status.MAX_STEPS_REACHED),
        (Limits(max_duration=timedelta(minutes=1)), Status.BUDGET_EXCEEDED),
        (Limits(max_iterations=1, is_blocking=True), Status.PAUSED),
    ],
)
def test_the_limits_of_the_turn_hold_for_the_repair(limits: Limits, status: Status) -> None:
    told = misfit(Told(an_agent(limits=limits)).begun().later(minutes=2))

    assert told.turn.status is status
    assert kinds(told)[:3] == [UserMessage, AssistantMessage, NoticeMessage]


def test_a_repair_that_a_limit_paused_is_made_when_the_limit_is_raised() -> None:
    told = misfit(Told(an_agent(limits=Limits(max_iterations=1, is_blocking=True))).begun())

    told.resumed(Limits(max_iterations=2)).begun().answered(GOOD, output=FITS)

    assert told.turn.status is Status.COMPLETED
    assert kinds(told) == [UserMessage, AssistantMessage, NoticeMessage, AssistantMessage]


def test_a_cancellation_beats_both_ends() -> None:
    assert Told().begun().cancelled().answered(GOOD, output=FITS).turn.output is None
    assert not misfit(Told().begun().cancelled()).turn.is_repaired


def test_a_pause_drops_the_repair_and_resuming_makes_it() -> None:
    told = misfit(Told().begun()).paused().tell(i.Resume()).begun()

    assert kinds(told) == [UserMessage, AssistantMessage, NoticeMessage]
    assert told.answered(GOOD, output=FITS).turn.status is Status.COMPLETED
