"""Rules for a model call that brought no answer.

recognised failure        tried again by itself (T33) or waits with a fresh failureId (T34); an
                          agent for batches fails instead of waiting (C7)
the request is refused    the turn fails (T36a); a fault of ours likewise (T36)
cancellation asked for    beats all of them; the answer is dropped (T37, case 123)
"""

from datetime import datetime
from typing import Literal

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.answer_events import pieces
from app.turn.failures import FailureRecord
from app.turn.retry import retry_due_at
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.steps import cancelled, end_step, failed


def gave_up_on(
    turn: Turn, state: CallingModel, given: i.ModelGaveUp, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    """The turn waits, for a scheduled retry or for somebody, or fails (T33, T34, C7)."""
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    record = FailureRecord(
        failure_id=given.failure_id,
        failure=given.failure,
        model_attempt=turn.counters.model_attempts,
        occurred_at=at,
    )
    had_output = bool(state.text_stored or given.text)
    due_at = (
        None
        if had_output  # it may have been read already: C12
        else retry_due_at(
            agent.retry,
            given.failure,
            retries_in_a_row=turn.counters.consecutive_retries,
            chance=given.chance,
            at=at,
        )
    )
    return (
        *pieces(state, given.text, given.reasoning),
        e.ModelFailed(attempt_id=given.attempt_id, record=record, usage=given.usage),
        end_step(turn),
        *_what_then(turn, record, due_at, agent, at=at),
    )


def refused(turn: Turn, given: i.ModelRefused) -> tuple[e.Event, ...]:
    """The turn fails: the same request would be refused again (T36a)."""
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    return (end_step(turn), *failed(turn, "request_refused", given.refusal.message))


def _what_then(
    turn: Turn, record: FailureRecord, due_at: datetime | None, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    if due_at is None and agent.on_model_failure == "fail":
        return failed(turn, "model_failed", record.failure.message)
    return _suspended(turn, record, due_at, at)


def _suspended(
    turn: Turn, record: FailureRecord, due_at: datetime | None, at: datetime
) -> tuple[e.Event, ...]:
    kind: Literal["MODEL", "RETRY"] = "MODEL" if due_at is None else "RETRY"
    suspended = e.TurnSuspended(
        suspension_type=kind, record=record, requested_at=at, next_runnable_at=due_at
    )
    if due_at is None:
        return (suspended,)
    count = turn.counters.consecutive_retries + 1
    return (suspended, e.RetryWasScheduled(retry_count=count, due_at=due_at))
