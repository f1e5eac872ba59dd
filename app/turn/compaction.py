"""A history that has become too long: summed up by its own model, once for a failure (T38, C9).

    a request is too long        the model is asked for a summary of what was said before the turn,
                                 and then asked again (`compact_then_wait`, the default); or the
                                 turn waits at once (`wait`), or fails (`fail`)
    somebody asks for it         RETRY_MODEL with `compact`: the same, whatever the policy
    the summary is good          it stands in requests for what it sums up; the transcript keeps all
    it is none                   empty, cut, with calls, not smaller, or the request failed: the
                                 turn waits with the failure that it had (case 147)
    the turn is cancelled        beats all of them

The running turn is never summed up, so no call is parted from its result and whatever is open stays
(case 146). "Once" holds until the model answers or somebody commands: a model that still finds the
request too long behind a summary is not asked for another one (scenario 095).

A summary that somebody asked for and that came to nothing leaves a failure of its own: the one that
they named is over, and a command that comes twice must not be taken twice.
"""

from dataclasses import replace
from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.failures import (
    FailureRecord,
    FailureType,
    ModelFailure,
    RequestRefused,
    TokenLimitPhase,
)
from app.turn.model_events import CompactionProblem
from app.turn.state import Turn
from app.turn.states import Compacting
from app.turn.status import PauseCause
from app.turn.steps import cancelled, end_step, failed, then_begin
from app.turn.transcript import FINISHED, ModelAnswer, Usage
from app.turn.window import estimated_tokens


def is_too_long(failure: ModelFailure) -> bool:
    """Whether a shorter history is what helps."""
    return (
        failure.type is FailureType.TOKEN_LIMIT_EXCEEDED
        and failure.token_limit_phase is not TokenLimitPhase.OUTPUT
    )


def can_compact(turn: Turn, failure: ModelFailure, agent: Agent, *, has_more: bool) -> bool:
    """Whether the failure, which came before any output, is answered with a summary.

    `has_more`: whether something was said before the turn that a summary could stand for.
    """
    is_policy = agent.on_context_full == "compact_then_wait"
    return is_policy and has_more and is_too_long(failure) and not turn.has_compacted


def compaction_ended(
    turn: Turn, state: Compacting, given: i.CompactionEnded, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    """The model is asked again, over the summary; without one the turn waits or fails."""
    if turn.cancel_requested:
        return (_came_to_nothing(given, "cancelled"), end_step(turn), *cancelled(turn))
    found = _summary_in(given)
    if isinstance(found, e.ContextCompacted) or found.reason == "nothing_to_compact":
        events: tuple[e.Event, ...] = (found, end_step(turn))
        return then_begin(turn, events, agent, given.next_attempt_id, at=at)
    if not state.is_asked:
        return (found, end_step(turn), *_stopped(turn, state.record, agent, at))
    record = replace(
        state.record,
        failure_id=given.failure_id,
        model_attempt=turn.counters.model_attempts,
        occurred_at=at,
    )
    again = e.ModelFailed(attempt_id=given.attempt_id, record=record)
    return (found, again, end_step(turn), *_stopped(turn, record, agent, at))


def compaction_dropped(turn: Turn, *, at: datetime) -> tuple[e.Event, ...]:
    """The request for a summary was dropped, because the turn is to end or to pause."""
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    if not turn.pause_requested:
        return ()
    return (end_step(turn), e.TurnPaused(cause=PauseCause.PERSON, requested_at=at))


def _stopped(turn: Turn, record: FailureRecord, agent: Agent, at: datetime) -> tuple[e.Event, ...]:
    if agent.on_model_failure == "fail":
        return failed(turn, "model_failed", record.failure.message)
    return (
        e.TurnSuspended(
            suspension_type="MODEL", record=record, requested_at=at, next_runnable_at=None
        ),
    )


def _summary_in(given: i.CompactionEnded) -> e.ContextCompacted | e.CompactionFailed:
    """The summary, where what came back is one."""
    replaced, answer = given.replaced, given.ending
    if replaced is None:
        return _came_to_nothing(given, "nothing_to_compact")
    if not isinstance(answer, ModelAnswer):
        return _came_to_nothing(given, "model_failed")
    summary = answer.text.strip()
    tokens = estimated_tokens(summary)
    if answer.tool_calls or answer.stop_reason not in FINISHED:
        return _came_to_nothing(given, "malformed")
    if not summary:
        return _came_to_nothing(given, "empty")
    if tokens >= replaced.tokens:
        return _came_to_nothing(given, "not_smaller")
    return e.ContextCompacted(
        attempt_id=given.attempt_id,
        first=replaced.first,
        last=replaced.last,
        summary=summary,
        replaced_tokens=replaced.tokens,
        summary_tokens=tokens,
        usage=answer.usage,
    )


def _came_to_nothing(given: i.CompactionEnded, reason: CompactionProblem) -> e.CompactionFailed:
    detail, usage = "", Usage()
    match given.ending:
        case ModelAnswer(usage=usage):
            pass
        case ModelFailure(message=detail) | RequestRefused(message=detail):
            pass
        case None:
            pass
    return e.CompactionFailed(
        attempt_id=given.attempt_id, reason=reason, detail=detail, usage=usage
    )
