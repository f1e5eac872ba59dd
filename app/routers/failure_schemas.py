"""A failure as callers see it: operators all of it, everybody else what is safe to show."""

from datetime import datetime, timedelta

from app.routers.sentences import Language, failure_sentence
from app.routers.wire import Output
from app.services.principal import Principal
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

    exception_type: str | None
    http_status: int
    error_code: str | None
    error_type: str | None
    model_attempt: int


class FailurePage(Output):
    items: list[FullFailure | SafeFailure]
    next_cursor: str | None


def failure_output(
    record: FailureRecord, principal: Principal, language: Language
) -> SafeFailure | FullFailure:
    """The failure as far as `principal` may see it."""
    failure = record.failure
    safe = SafeFailure(
        failure_id=record.failure_id,
        type=failure.type,
        message=failure_sentence(record, language),
        retry_after_millis=millis(failure.retry_after),
        token_limit_phase=failure.token_limit_phase,
        occurred_at=record.occurred_at,
    )
    if not principal.sees_provider_details:
        return safe
    return FullFailure(
        **safe.model_dump(by_alias=False, exclude={"message"}),
        message=failure.message,
        exception_type=failure.exception_type,
        http_status=failure.http_status,
        error_code=failure.error_code,
        error_type=failure.error_type,
        model_attempt=record.model_attempt,
    )


def millis(span: timedelta | None) -> int | None:
    return None if span is None else round(span.total_seconds() * 1000)
