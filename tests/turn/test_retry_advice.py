"""What is said of a retry before it is pressed: whether it helps, what would, and from when on."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.turn.actions import Action, actions
from app.turn.agent import Limits, RetryPolicy
from app.turn.failures import (
    FailureRecord,
    FailureType,
    ModelFailure,
    TokenLimitPhase,
)
from app.turn.ids import FailureId
from app.turn.retry_advice import Remedy, advice_on_retry
from tests.support.turns import NOON, OVERLOADED, QUOTA, Told, a_call, an_agent, an_answer

TOO_LONG = ModelFailure(type=FailureType.TOKEN_LIMIT_EXCEEDED, message="too long", retryable=False)
MINUTE = timedelta(minutes=1)


def the(told: Told, command: str, *, at: datetime | None = None) -> Action:
    """The action for a command, as it is offered at a time."""
    [found] = [a for a in actions(told.turn, at=at or told.at) if a.command == command]
    return found


def waiting_for(failure: ModelFailure) -> Told:
    return Told().begun().gave_up(failure)


@pytest.mark.parametrize(
    ("phase", "helps"),
    [
        (TokenLimitPhase.INPUT_CONTEXT, ("shorter_history", "other_model")),
        (TokenLimitPhase.OUTPUT, ("shorter_answer", "higher_output_limit")),
        (TokenLimitPhase.TOTAL_CONTEXT, ("shorter_history", "shorter_answer", "other_model")),
        (None, ("shorter_history", "shorter_answer", "other_model")),
    ],
)
def test_case_32_a_plain_retry_of_a_token_limit_is_offered_with_what_would_help(
    phase: TokenLimitPhase | None, helps: tuple[Remedy, ...]
) -> None:
    retry = the(waiting_for(replace(TOO_LONG, token_limit_phase=phase)), "RETRY_MODEL")

    assert retry.enabled
    assert (retry.reason, retry.helps) == ("unlikely_to_help", helps)


def test_a_retry_of_an_exhausted_quota_helps_when_somebody_has_paid() -> None:
    retry = the(waiting_for(QUOTA), "RETRY_MODEL")

    assert (retry.enabled, retry.reason) == (True, "after_top_up")
    assert retry.helps == ("top_up", "other_model")
    assert retry.helps_from is None


def test_a_quota_that_has_come_back_speaks_against_nothing() -> None:
    told = waiting_for(replace(QUOTA, retry_after=MINUTE))

    assert the(told, "RETRY_MODEL").helps_from == told.at + MINUTE
    assert the(told, "RETRY_MODEL", at=told.at + MINUTE).reason is None


def test_before_a_stated_wait_is_over_a_retry_says_from_when_it_helps() -> None:
    told = waiting_for(replace(OVERLOADED, type=FailureType.RATE_LIMITED, retry_after=MINUTE))

    early, in_time = the(told, "RETRY_MODEL"), the(told, "RETRY_MODEL", at=told.at + MINUTE)

    assert (early.enabled, early.reason, early.helps_from) == (True, "not_before", told.at + MINUTE)
    assert (in_time.enabled, in_time.reason, in_time.helps_from) == (True, None, None)


def test_whoever_does_not_wait_for_a_scheduled_retry_is_told_of_a_stated_wait() -> None:
    patient = an_agent(retry=RetryPolicy(max_retries=1, jitter="none"))
    stated = Told(patient).begun().gave_up(replace(OVERLOADED, retry_after=MINUTE))
    own = Told(patient).begun().gave_up(OVERLOADED)

    assert the(stated, "CONTINUE").helps_from == stated.at + MINUTE
    assert the(own, "CONTINUE").reason is None


@pytest.mark.parametrize("type_", [FailureType.UNAVAILABLE, FailureType.OVERLOADED])
def test_what_stays_wrong_until_somebody_mends_it_says_so(type_: FailureType) -> None:
    retry = the(waiting_for(replace(OVERLOADED, type=type_, retryable=False)), "RETRY_MODEL")

    assert (retry.enabled, retry.reason) == (True, "needs_operator")


def test_a_request_that_is_larger_than_the_window_is_not_cured_by_waiting() -> None:
    too_large = replace(
        OVERLOADED, type=FailureType.RATE_LIMITED, retryable=False, retry_after=MINUTE
    )

    assert the(waiting_for(too_large), "RETRY_MODEL").reason == "unlikely_to_help"


failures = st.builds(
    ModelFailure,
    type=st.sampled_from(FailureType),
    message=st.just("no"),
    retryable=st.booleans(),
    retry_after=st.none() | st.timedeltas(timedelta(0), timedelta(days=40)),
    token_limit_phase=st.none() | st.sampled_from(TokenLimitPhase),
)


@given(failures, st.timedeltas(timedelta(0), timedelta(days=50)))
def test_a_time_is_the_providers_or_there_is_none(failure: ModelFailure, since: timedelta) -> None:
    record = FailureRecord(
        failure_id=FailureId("f1"), failure=failure, model_attempt=1, occurred_at=NOON
    )

    advice = advice_on_retry(record, at=NOON + since)

    if advice is not None and advice.helps_from is not None:
        assert failure.retry_after is not None
        assert advice.helps_from == NOON + failure.retry_after > NOON + since


@given(failures)
def test_a_failure_that_nobody_retries_by_itself_is_never_offered_without_a_word(
    failure: ModelFailure,
) -> None:
    is_hopeless = not failure.retryable and failure.retry_after is None

    retry = the(waiting_for(failure), "RETRY_MODEL")

    assert retry.enabled
    assert retry.reason is not None or not is_hopeless


def test_a_turn_that_a_limit_has_paused_says_that_it_needs_another_limit() -> None:
    told = Told(an_agent(limits=Limits(max_iterations=1, is_blocking=True)))
    told.begun().answered(an_answer("", a_call("A"))).finished("A")

    resume = the(told, "RESUME")

    assert (resume.enabled, resume.reason, resume.helps) == (
        True,
        "limit_reached",
        ("higher_limit",),
    )
    assert resume.changes == ("limits",)


def test_a_turn_that_a_person_has_paused_is_resumed_without_a_caution() -> None:
    assert the(Told().begun().paused(), "RESUME").reason is None
