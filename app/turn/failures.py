"""A provider's refusal as a value: what went wrong, and what it says about trying again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from app.turn.ids import FailureId


class FailureType(StrEnum):
    """The five reasons for which a turn waits instead of failing."""

    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"
    TOKEN_LIMIT_EXCEEDED = "TOKEN_LIMIT_EXCEEDED"  # noqa: S105 - the name of a failure
    OVERLOADED = "OVERLOADED"
    UNAVAILABLE = "UNAVAILABLE"


class TokenLimitPhase(StrEnum):
    """Which limit a `TOKEN_LIMIT_EXCEEDED` ran into."""

    INPUT_CONTEXT = "INPUT_CONTEXT"
    OUTPUT = "OUTPUT"
    TOTAL_CONTEXT = "TOTAL_CONTEXT"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailure:
    """A recognised failure of the model: the turn can wait for it to pass."""

    type: FailureType
    message: str
    """The provider's own words, redacted of credentials; for operators only."""
    retryable: bool
    """Whether the same request may be sent again, after waiting, with nobody's help."""
    retry_after: timedelta | None = None
    """The wait the provider stated; never invented, never negative."""
    token_limit_phase: TokenLimitPhase | None = None
    http_status: int = 0
    """0 when no HTTP answer came."""
    error_code: str | None = None
    error_type: str | None = None
    exception_type: str | None = None
    withheld_tools: tuple[str, ...] = ()
    """Names of the calls that had come of the answer when it broke; none of them was run (C23)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused:
    """The provider says that the request itself is wrong, or its policy refuses it.

    Asking again would not help, so this is no `ModelFailure`: the turn fails.
    """

    message: str
    http_status: int = 0
    error_code: str | None = None
    error_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """One failure of one turn, as its history keeps it."""

    failure_id: FailureId
    failure: ModelFailure
    model_attempt: int
    """Requests sent so far in this turn, this one included; from 1."""
    occurred_at: datetime
