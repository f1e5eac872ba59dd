"""A provider's refusal as a value: what went wrong, and what it says about trying again."""

from base64 import b32encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b

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
class FailureKind:
    """What failures have in common that are counted together."""

    type: FailureType
    token_limit_phase: TokenLimitPhase | None = None
    provider: str | None = None
    model: str | None = None
    http_status: int = 0
    error_code: str | None = None


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
    provider: str | None = None
    """Who was asked, by its name in the settings; `None` when that is not known."""
    model: str | None = None
    """Without its provider."""

    @property
    def kind(self) -> FailureKind:
        return FailureKind(
            type=self.type,
            token_limit_phase=self.token_limit_phase,
            provider=self.provider,
            model=self.model,
            http_status=self.http_status,
            error_code=self.error_code or self.error_type,
        )


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

    @property
    def retry_at(self) -> datetime | None:
        """When the provider said it takes requests again; `None` when it did not say."""
        wait = self.failure.retry_after
        return None if wait is None else self.occurred_at + wait

    @property
    def error_ref(self) -> str:
        """What joins the page that an operator sees and the line in the log."""
        return error_ref(self.failure_id)


def error_ref(of: str) -> str:
    """A short reference for a failure, or for the turn that failed: always the same for one id."""
    return f"err_{b32encode(blake2b(of.encode(), digest_size=5).digest()).decode()}"
