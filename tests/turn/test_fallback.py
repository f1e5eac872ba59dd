"""Fallback models: asked in their order, at once, before any output, and never over a person's."""

from dataclasses import replace

from app.turn import events as e
from app.turn.agent import Agent, Limits, RetryPolicy
from app.turn.changes import Changes
from app.turn.failures import FailureType
from app.turn.states import CallingModel
from app.turn.status import Status
from tests.support.turns import OVERLOADED, QUOTA, TOO_LONG, Told, a_call, an_agent, an_answer


def agent(*types: FailureType, retry: RetryPolicy | None = None) -> Agent:
    return replace(
        an_agent(retry=retry),
        model="a/one",
        fallbacks=("b/two", "c/three"),
        fallback_on=frozenset(types or {FailureType.OVERLOADED, FailureType.QUOTA_EXCEEDED}),
    )


def asked(told: Told) -> str | None:
    return told.turn.model_under(told.agent)


def failed(told: Told) -> list[str]:
    return [event.record.failure_id for event in told.events if isinstance(event, e.ModelFailed)]


def test_the_models_are_asked_in_their_order_and_every_failure_is_in_the_history() -> None:
    told = Told(agent()).begun()

    told.gave_up(OVERLOADED, failure_id="f1")
    assert (asked(told), told.turn.status) == ("b/two", Status.RUNNING)
    assert told.types == ["MODEL_FAILED", "STEP_COMPLETED", "STEP_STARTED", "MODEL_STARTED"]

    told.gave_up(QUOTA, failure_id="f2")
    assert asked(told) == "c/three"

    told.gave_up(OVERLOADED, failure_id="f3")
    assert told.turn.status is Status.WAITING_FOR_MODEL
    assert told.turn.current_failure is not None
    assert (told.turn.current_failure.failure_id, failed(told)) == ("f3", ["f1", "f2", "f3"])
    assert told.turn.counters.model_attempts == 3


def test_a_failure_that_the_agent_does_not_name_waits() -> None:
    told = Told(agent(FailureType.OVERLOADED)).begun().gave_up(QUOTA)

    assert told.turn.status is Status.WAITING_FOR_MODEL
    assert asked(told) == "a/one"


def test_behind_the_first_word_no_other_model_is_asked() -> None:
    told = Told(agent()).begun().wrote("Once").gave_up(OVERLOADED, text="Once upon")
    unstored = Told(agent()).begun().gave_up(OVERLOADED, text="Once upon")

    assert told.turn.status is Status.WAITING_FOR_MODEL
    assert unstored.turn.status is Status.WAITING_FOR_MODEL


def test_the_turn_stays_with_the_model_that_has_answered() -> None:
    told = Told(agent()).begun().gave_up(OVERLOADED)
    told.answered(an_answer("", a_call("A"))).finished("A")

    assert isinstance(told.turn.state, CallingModel)
    assert asked(told) == "b/two"


def test_whoever_ends_a_wait_for_the_model_begins_with_the_first() -> None:
    told = Told(agent(FailureType.OVERLOADED)).begun().gave_up(OVERLOADED)
    told.gave_up(QUOTA, failure_id="f2")

    assert asked(told.branched().retried("f2")) == "a/one"
    assert asked(told.branched().posted()) == "a/one"


def test_an_automatic_retry_asks_the_last_model_again_and_no_exhausted_one() -> None:
    told = Told(agent(retry=RetryPolicy(max_retries=1))).begun()
    told.gave_up(QUOTA).gave_up(QUOTA, failure_id="f2").gave_up(OVERLOADED, failure_id="f3")

    assert told.turn.status is Status.RETRY_SCHEDULED
    assert asked(told.later(minutes=2).begun()) == "c/three"


def test_no_other_model_is_asked_than_the_one_that_a_person_has_named() -> None:
    told = Told(agent(FailureType.OVERLOADED)).begun().gave_up(QUOTA)
    told.retried(changes=Changes(model="d/four")).begun().gave_up(OVERLOADED, failure_id="f2")

    assert (asked(told), told.turn.status) == ("d/four", Status.WAITING_FOR_MODEL)


def test_a_request_that_a_fallback_model_refuses_waits_although_the_first_would_fail_it() -> None:
    first = Told(agent()).begun().refused()
    second = Told(agent()).begun().gave_up(OVERLOADED).refused(failure_id="f2")

    assert first.turn.status is Status.FAILED
    assert second.turn.status is Status.WAITING_FOR_MODEL
    assert second.turn.current_failure is not None
    assert second.turn.current_failure.failure.type is FailureType.UNAVAILABLE


def test_what_a_fallback_refuses_is_an_outage_for_those_that_name_outages() -> None:
    every = agent(FailureType.OVERLOADED, FailureType.UNAVAILABLE)
    told = Told(every).begun().gave_up(OVERLOADED).refused(failure_id="f2")

    assert (asked(told), told.turn.status) == ("c/three", Status.RUNNING)


def test_a_larger_model_comes_before_a_summary_where_the_agent_names_token_limits() -> None:
    told = Told(agent(FailureType.TOKEN_LIMIT_EXCEEDED), first_position=10).begun()

    told.gave_up(TOO_LONG, can_compact=True)
    assert asked(told) == "b/two"

    told.gave_up(TOO_LONG, failure_id="f2", can_compact=True)
    told.gave_up(TOO_LONG, failure_id="f3", can_compact=True)
    assert "COMPACTION_STARTED" in told.types
    assert asked(told) == "c/three"


def test_limits_hold_over_fallbacks_too() -> None:
    bounded = replace(agent(), limits=Limits(max_steps=1))
    told = Told(bounded).begun().gave_up(OVERLOADED)

    assert told.turn.status is Status.MAX_STEPS_REACHED


def test_a_cancellation_beats_a_fallback() -> None:
    told = Told(agent()).begun().cancelled().gave_up(OVERLOADED)

    assert told.turn.status is Status.CANCELLED
