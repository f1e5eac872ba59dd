"""A failure as callers see it: operators all of it, everybody else what is safe to show."""

from datetime import datetime, timedelta

from pydantic import Field

from app.routers.reader import Reader
from app.routers.sentences import failure_sentence
from app.routers.wire import Output, is_absent
from app.turn.failures import FailureRecord, FailureType, TokenLimitPhase


class SafeFailure(Output):
    """For roles `user` and `viewer`."""

    failure_id: str
    type: FailureType
    message: str
    retry_after_millis: int | None
    token_limit_phase: TokenLimitPhase | None
    occurred_at: datetime


class FullFailure(SafeFailure):
    """For operators; `message` is the provider's own, redacted."""

    error_ref: str
    """Joins this failure and its line in the log."""
    provider: str | None
    model: str | None
    exception_type: str | None
    http_status: int
    error_code: str | None
    error_type: str | None
    model_attempt: int
    top_up_url: str | None = Field(default=None, exclude_if=is_absent)
    """Where an exhausted quota is raised or switched, as configured."""


class FailurePage(Output):
    items: list[FullFailure | SafeFailure]
    next_cursor: str | None


def failure_output(record: FailureRecord, reader: Reader) -> SafeFailure | FullFailure:
    """The failure as far as `reader` may see it."""
    failure = record.failure
    safe = SafeFailure(
        failure_id=record.failure_id,
        type=failure.type,
        message=failure_sentence(record, reader.language),
        retry_after_millis=millis(failure.retry_after),
        token_limit_phase=failure.token_limit_phase,
        occurred_at=record.occurred_at,
    )
    if not reader.principal.sees_provider_details:
        return safe
    is_used_up = failure.type is FailureType.QUOTA_EXCEEDED
    return FullFailure(
        **safe.model_dump(by_alias=False, exclude={"message"}),
        message=failure.message,
        error_ref=record.error_ref,
        provider=failure.provider,
        model=failure.model,
        exception_type=failure.exception_type,
        http_status=failure.http_status,
        error_code=failure.error_code,
        error_type=failure.error_type,
        model_attempt=record.model_attempt,
        top_up_url=reader.top_up.of(failure.provider) if is_used_up else None,
    )


def millis(span: timedelta | None) -> int | None:
    return None if span is None else round(span.total_seconds() * 1000)
