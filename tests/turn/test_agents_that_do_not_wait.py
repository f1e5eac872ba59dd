"""An agent with `on_model_failure="fail"`: what would wait for the model ends (C7)."""

import pytest

from app.turn import events as e
from app.turn.agent import RetryPolicy
from app.turn.states import Failed
from app.turn.status import Status
from app.turn.transcript import ClosingMessage, Outcome, ToolResult
from tests.support.turns import FLAKY, OVERLOADED, QUOTA, Told, a_call, an_agent, an_answer


def hasty(max_retries: int = 0) -> Told:
    return Told(an_agent(retry=RetryPolicy(max_retries=max_retries), on_model_failure="fail"))


def test_a_failure_that_is_not_retried_ends_the_turn_with_its_history_closed() -> None:
    told = hasty().begun().answered(an_answer("", a_call("A"))).finished("A").gave_up(QUOTA)

    assert told.types == ["MODEL_FAILED", "STEP_COMPLETED", "MESSAGE_ADDED", "TURN_FAILED"]
    assert told.turn.state == Failed(reason="model_failed")
    assert told.turn.current_failure is None
    assert told.turn.counters.model_failures == 1
    assert [type(told.transcript[n]) for n in (2, 3)] == [ToolResult, ClosingMessage]


def test_retries_are_made_as_ever_and_each_failure_is_kept() -> None:
    told = hasty(max_retries=1).begun().gave_up(OVERLOADED)
    assert told.turn.status is Status.RETRY_SCHEDULED

    told.later(minutes=2).begun().gave_up(OVERLOADED, failure_id="f2")

    kept = [event.record.failure_id for event in told.events if isinstance(event, e.ModelFailed)]
    assert kept == ["f1", "f2"]
    assert told.turn.state == Failed(reason="model_failed")


@pytest.mark.parametrize("text", ["", "half"])
def test_an_answer_that_broke_is_a_failure_like_any_other(text: str) -> None:
    told = hasty().begun().wrote("ha").gave_up(OVERLOADED, text=text)

    assert told.turn.state == Failed(reason="model_failed")
    assert list(told.transcript) == ([0, 1, 2] if text else [0, 1])


def test_an_answer_with_nothing_in_it_is_one_too() -> None:
    told = hasty().begun()

    for _ in range(3):
        told.answered(an_answer(""))

    assert told.turn.state == Failed(reason="model_failed")


def test_cancellation_beats_it() -> None:
    assert hasty().begun().cancelled().gave_up(QUOTA).turn.status is Status.CANCELLED


def test_a_tool_that_is_tried_again_is_no_failure_of_the_model() -> None:
    told = hasty().begun().answered(an_answer("", a_call("A", FLAKY)))

    told.finished("A", outcome=Outcome.ERROR)

    assert told.turn.status is Status.RETRY_SCHEDULED
