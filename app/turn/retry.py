"""When a failed model call is tried again by itself.

Rules (turn semantics, T33, T34, C11, C12, cases 23, 33, 34, 44, 45): only a failure that may be
repeated unchanged, never an exhausted quota or a token limit; only before any output; as often in
a row as the policy says; not before the wait the provider stated, and not at all by itself when
that wait is longer than the policy bears: then the turn parks and shows the time.
"""

from datetime import datetime, timedelta

from app.turn.agent import RetryPolicy
from app.turn.failures import FailureType, ModelFailure

_NEVER = frozenset({FailureType.QUOTA_EXCEEDED, FailureType.TOKEN_LIMIT_EXCEEDED})


def retry_due_at(
    policy: RetryPolicy,
    failure: ModelFailure,
    *,
    retries_in_a_row: int,
    chance: float,
    at: datetime,
) -> datetime | None:
    """The time of the next automatic try, or `None` when the turn must wait for somebody.

    Args:
        policy: the agent's.
        failure: what just happened, before any output.
        retries_in_a_row: automatic retries since the last success or command; from 0.
        chance: in [0, 1], the part of the back-off that full jitter lets stand.
        at: now.
    """
    if retries_in_a_row >= policy.max_retries or not failure.retryable or failure.type in _NEVER:
        return None
    stated = failure.retry_after or timedelta()
    if stated > policy.max_retry_after:
        return None
    return at + max(jittered(policy, retries_in_a_row, chance), stated)


def jittered(policy: RetryPolicy, retries_in_a_row: int, chance: float) -> timedelta:
    """The back-off as far as jitter lets it stand; `chance` is in [0, 1]."""
    delay = backoff(policy, retries_in_a_row)
    return delay if policy.jitter == "none" else delay * min(max(chance, 0.0), 1.0)


def backoff(policy: RetryPolicy, retries_in_a_row: int) -> timedelta:
    """`initial_delay * multiplier ** n`, never above the cap and never overflowing."""
    cap = policy.max_delay.total_seconds()
    seconds = policy.initial_delay.total_seconds()
    for _ in range(retries_in_a_row):
        if seconds >= cap:
            break
        seconds *= policy.multiplier
    return timedelta(seconds=min(seconds, cap))
