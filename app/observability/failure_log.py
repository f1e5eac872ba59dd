"""The line in the log for a model's failure; its `error_ref` is the one an operator's page shows.

Nothing of what a provider wrote is in it but names: a code is told where it looks like one.
"""

import structlog

from app.observability.labels import as_name
from app.ports import Commit
from app.turn import events as e
from app.turn.failures import FailureRecord, error_ref
from app.turn.state import Turn

_log = structlog.get_logger(__name__)


def log_failures(commit: Commit) -> None:
    """Write down the failures that a commit that is stored has recorded."""
    for event in commit.events:
        match event:
            case e.ModelFailed(record=record):
                _log_failure(commit.after, record)
            case e.TurnFailed(reason=reason):
                turn_id = commit.after.identity.turn_id
                ref = error_ref(turn_id)
                _log.warning("turn_failed", error_ref=ref, turn_id=turn_id, reason=reason)
            case _:
                pass


def _log_failure(turn: Turn, record: FailureRecord) -> None:
    failure = record.failure
    wait = failure.retry_after
    _log.warning(
        "model_failed",
        error_ref=record.error_ref,
        failure_id=record.failure_id,
        turn_id=turn.identity.turn_id,
        agent_id=turn.identity.agent_id,
        type=failure.type.value,
        phase=failure.token_limit_phase and failure.token_limit_phase.value,
        provider=failure.provider,
        model=failure.model,
        http_status=failure.http_status,
        error_code=as_name(failure.error_code),
        error_type=as_name(failure.error_type),
        exception_type=failure.exception_type,
        retryable=failure.retryable,
        stated_wait_seconds=None if wait is None else wait.total_seconds(),
        model_attempt=record.model_attempt,
        status=turn.status.value,
    )
