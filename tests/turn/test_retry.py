"""When a failed call is tried again by itself."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.turn.agent import RetryPolicy
from app.turn.failures import FailureType, ModelFailure
from app.turn.retry import backoff, retry_due_at
from tests.support.turns import NOON, OVERLOADED, QUOTA

policies = st.builds(
    RetryPolicy,
    max_retries=st.just(10**9),
    initial_delay=st.timedeltas(timedelta(0), timedelta(hours=1)),
    multiplier=st.floats(1, 1e6),
    max_delay=st.timedeltas(timedelta(0), timedelta(hours=1)),
    jitter=st.sampled_from(["full", "none"]),
)


@given(policies, st.integers(0, 10**6))
def test_case_44_the_back_off_never_overflows_and_never_passes_the_cap(
    policy: RetryPolicy, n: int
) -> None:
    assert timedelta(0) <= backoff(policy, n) <= policy.max_delay


@given(policies, st.integers(0, 50), st.floats(0, 1))
def test_case_45_jitter_stays_between_now_and_the_rule(
    policy: RetryPolicy, n: int, chance: float
) -> None:
    due = retry_due_at(policy, OVERLOADED, retries_in_a_row=n, chance=chance, at=NOON)

    assert due is not None
    assert NOON <= due <= NOON + backoff(policy, n)


def _limited(seconds: float) -> ModelFailure:
    return ModelFailure(
        type=FailureType.RATE_LIMITED,
        message="",
        retryable=True,
        retry_after=timedelta(seconds=seconds),
    )


def test_case_33_a_stated_wait_is_kept() -> None:
    policy = RetryPolicy(max_retries=1)

    due = retry_due_at(policy, _limited(20), retries_in_a_row=0, chance=0, at=NOON)

    assert due == NOON + timedelta(seconds=20)


def test_case_34_a_wait_beyond_the_maximum_parks_the_turn() -> None:
    policy = RetryPolicy(max_retries=1)

    assert retry_due_at(policy, _limited(301), retries_in_a_row=0, chance=0, at=NOON) is None


def test_case_23_an_exhausted_quota_is_never_retried_by_itself() -> None:
    policy = RetryPolicy(max_retries=5)
    even_if_it_says_so = ModelFailure(type=QUOTA.type, message="", retryable=True)

    for failure in (QUOTA, even_if_it_says_so):
        assert retry_due_at(policy, failure, retries_in_a_row=0, chance=0, at=NOON) is None


def test_without_retries_a_failure_waits_at_once() -> None:
    due = retry_due_at(RetryPolicy(), OVERLOADED, retries_in_a_row=0, chance=0, at=NOON)

    assert due is None
