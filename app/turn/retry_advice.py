"""What a retry by a person can be expected to do, and what would help instead (case 32).

A retry is always accepted. Where the same request would be refused again, its button says so:

token limit              the same text is as long as before
exhausted quota          refused until somebody pays, or until the time the provider has stated
a failure that waits     a key, a permission, a model that is gone: the same until it is put right
  for somebody
a stated wait            refused before its end
anything else            it may have passed

A time is the provider's or there is none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from app.turn.failures import FailureRecord, FailureType, TokenLimitPhase

Prospect: TypeAlias = Literal["unlikely_to_help", "after_top_up", "needs_operator", "not_before"]
"""Why a retry that would be accepted may not help now."""
Remedy: TypeAlias = Literal[
    "shorter_history",
    "shorter_answer",
    "higher_output_limit",
    "other_model",
    "top_up",
    "configuration",
    "higher_limit",
]
"""What would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    reason: Prospect
    helps: tuple[Remedy, ...] = ()
    helps_from: datetime | None = None
    """From when on a retry helps, as the provider has stated it."""


_TOO_LONG: Mapping[TokenLimitPhase, tuple[Remedy, ...]] = {
    TokenLimitPhase.INPUT_CONTEXT: ("shorter_history", "other_model"),
    TokenLimitPhase.OUTPUT: ("shorter_answer", "higher_output_limit"),
    TokenLimitPhase.TOTAL_CONTEXT: ("shorter_history", "shorter_answer", "other_model"),
    TokenLimitPhase.UNKNOWN: ("shorter_history", "shorter_answer", "other_model"),
}


def advice_on_retry(record: FailureRecord, *, at: datetime) -> Advice | None:
    """What to know before retrying at the moment `at`; `None`: nothing speaks against it."""
    failure = record.failure
    stated = record.retry_at
    ahead = stated if stated is not None and stated > at else None
    match failure.type:
        case FailureType.TOKEN_LIMIT_EXCEEDED:
            phase = failure.token_limit_phase or TokenLimitPhase.UNKNOWN
            return Advice(reason="unlikely_to_help", helps=_TOO_LONG[phase])
        case FailureType.QUOTA_EXCEEDED if stated is None or ahead is not None:
            return Advice(reason="after_top_up", helps=("top_up", "other_model"), helps_from=ahead)
        case FailureType.RATE_LIMITED if not failure.retryable:
            # One request that is larger than the whole window never fits into it.
            return Advice(reason="unlikely_to_help", helps=("shorter_history", "other_model"))
        case FailureType.OVERLOADED | FailureType.UNAVAILABLE if not failure.retryable:
            return Advice(
                reason="needs_operator", helps=("configuration", "other_model"), helps_from=ahead
            )
        case _:
            return None if ahead is None else Advice(reason="not_before", helps_from=ahead)
