"""Rules for a model call that brought no answer.

recognised failure        before any output another model is asked (`fallback`), or the history is
                          summed up (`compaction`); else it is tried again by itself (T33) or the
                          turn waits with a fresh failureId (T34); an agent for batches fails
                          instead of waiting (C7)
after output began        it is never tried again by itself (C12); what came of it is kept as a
                          partial message, its calls are withheld (T31, `app.turn.partial`)
the request is refused    the turn fails; behind a change, of a fallback model, or where its agent
                          says so it waits (T36a); a fault of ours fails it in any case (T36)
a pause                   the call is dropped; what came of its answer is kept likewise (T53)
cancellation asked for    beats all of them; the answer is dropped (T37, case 123)
"""

from datetime import datetime
from typing import Literal

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.answer_events import pieces
from app.turn.compaction import can_compact, is_too_long
from app.turn.evolve import advance
from app.turn.failures import FailureRecord, FailureType, ModelFailure
from app.turn.fallback import can_fall_back
from app.turn.partial import broken_by, broken_for, cut_off
from app.turn.retry import retry_due_at
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.status import PauseCause
from app.turn.steps import cancelled, end_step, failed, then_begin
from app.turn.transcript import UNFINISHED


def gave_up_on(
    turn: Turn,
    state: CallingModel,
    given: i.ModelGaveUp,
    *,
    at: datetime,
    agent: Agent,
    may_retry: bool = True,
) -> tuple[e.Event, ...]:
    """The turn waits, for a scheduled retry or for somebody, or fails (T33, T34, C7).

    With `may_retry` false it is not tried again by itself, whatever the agent's policy.
    """
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    record = FailureRecord(
        failure_id=given.failure_id,
        failure=given.failure,
        model_attempt=turn.counters.model_attempts,
        occurred_at=at,
    )
    had_output = bool(state.text_stored or given.text)
    if not had_output and given.next_attempt_id is not None:
        then = _at_once(turn, given, agent)
        if then is not None:
            met = _met(given, record, then)
            instead = (*pieces(state, given.text, given.reasoning), met, end_step(turn))
            return then_begin(turn, instead, agent, given.next_attempt_id, at=at)
    due_at = (
        None
        if had_output or not may_retry  # it may have been read already: C12
        else retry_due_at(
            agent.retry,
            given.failure,
            retries_in_a_row=turn.counters.consecutive_retries,
            chance=given.chance,
            at=at,
        )
    )
    events = (
        *pieces(state, given.text, given.reasoning),
        _met(given, record),
        *cut_off(
            turn,
            given.attempt_id,
            agent,
            broken_by(record),
            text=given.text,
            reasoning=given.reasoning,
            withheld=given.failure.withheld_tools,
        ),
        end_step(turn),
    )
    return (*events, *_what_then(advance(turn, events), record, due_at, agent, at=at))


def _met(
    given: i.ModelGaveUp,
    record: FailureRecord,
    then: Literal["fall_back", "compact"] | None = None,
) -> e.ModelFailed:
    return e.ModelFailed(
        attempt_id=given.attempt_id,
        record=record,
        usage=given.usage,
        then=then,
        asked=given.asked,
    )


def _at_once(
    turn: Turn, given: i.ModelGaveUp, agent: Agent
) -> Literal["fall_back", "compact"] | None:
    """What is done about a failure before any output, instead of waiting."""
    if can_fall_back(turn, given.failure, agent):
        return "fall_back"
    if can_compact(turn, given.failure, agent, has_more=given.can_compact):
        return "compact"
    return None


def refused(
    turn: Turn, state: CallingModel, given: i.ModelRefused, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    """The turn fails: the same request would be refused again (T36a).

    Where its agent wants that, where it may be due to what somebody has changed, be it in the
    settings, or the model is not the agent's first, it waits: that can be changed (back).
    """
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    if agent.on_invalid_request == "wait" or _follows_a_change(turn, given):
        gave_up = i.ModelGaveUp(
            attempt_id=given.attempt_id,
            failure=_to_wait_for(given),
            failure_id=given.failure_id,
            text=given.text,
            reasoning=given.reasoning,
            next_attempt_id=given.next_attempt_id,  # no `asked`: what was refused is no new ground
        )
        return gave_up_on(turn, state, gave_up, at=at, agent=agent, may_retry=False)
    return _failed(turn, state, given, agent, "request_refused", given.refusal.message)


def _follows_a_change(turn: Turn, given: i.ModelRefused) -> bool:
    """Of what a person has changed, of the agent's models, or of what the settings say of them."""
    is_elsewhere = None not in (turn.asked, given.asked) and turn.asked != given.asked
    return turn.is_changed or turn.fallback > 0 or is_elsewhere


def crashed(
    turn: Turn, state: CallingModel, given: i.StepCrashed, agent: Agent
) -> tuple[e.Event, ...]:
    """A fault of ours or of the agent's own code fails the turn (T36)."""
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    return _failed(turn, state, given, agent, given.reason)


def dropped(
    turn: Turn, state: CallingModel, given: i.StepAbandoned, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """The model call was dropped for a pause, what readers have seen of it is stored (T53)."""
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    if not turn.pause_requested:
        return ()
    return (
        *pieces(state, given.text, given.reasoning),
        *cut_off(
            turn,
            given.attempt_id,
            agent,
            UNFINISHED,
            text=given.text,
            reasoning=given.reasoning,
        ),
        end_step(turn),
        e.TurnPaused(cause=PauseCause.PERSON, requested_at=at),
    )


def _failed(
    turn: Turn,
    state: CallingModel,
    given: i.ModelRefused | i.StepCrashed,
    agent: Agent,
    reason: str,
    detail: str = "",
) -> tuple[e.Event, ...]:
    events: tuple[e.Event, ...] = (
        *pieces(state, given.text, given.reasoning),
        *cut_off(
            turn,
            state.attempt_id,
            agent,
            broken_for(reason),
            text=given.text,
            reasoning=given.reasoning,
        ),
        end_step(turn),
    )
    return (*events, *failed(advance(turn, events), reason, detail))


def _to_wait_for(given: i.ModelRefused) -> ModelFailure:
    refusal = given.refusal
    return ModelFailure(
        type=FailureType.UNAVAILABLE,
        message=refusal.message,
        retryable=False,
        http_status=refusal.http_status,
        error_code=refusal.error_code,
        error_type=refusal.error_type,
    )


def _what_then(
    turn: Turn, record: FailureRecord, due_at: datetime | None, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    is_full = is_too_long(record.failure) and agent.on_context_full == "fail"
    if due_at is None and (is_full or agent.on_model_failure == "fail"):
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
