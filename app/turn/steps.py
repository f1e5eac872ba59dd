"""Beginning a step: the limits are checked, then the begin mark is made.

The end of one step and the beginning of the next are one commit, so these functions are called
both on a turn at rest and on one whose previous step has just ended.
"""

from datetime import datetime

from app.turn import events as e
from app.turn.agent import Agent, Limits
from app.turn.begin_tools import is_undecided, moves, resting
from app.turn.evolve import advance
from app.turn.ids import AttemptId
from app.turn.interruption import closing
from app.turn.judging import NOTHING_JUDGED, Judged
from app.turn.limits import Broken, broken_limit
from app.turn.questions import asking
from app.turn.state import Turn
from app.turn.states import CompactionDue, ToolsDue
from app.turn.status import Cursor, LimitName, PauseCause
from app.turn.steering import steered
from app.turn.transcript import InterruptionReason


def begin_next(
    turn: Turn,
    agent: Agent,
    attempt_id: AttemptId,
    *,
    at: datetime,
    judged: Judged = NOTHING_JUDGED,
) -> tuple[e.Event, ...]:
    """Begin whatever is due, or stop the turn: cancelled, paused, at a limit, with a question.

    This is the boundary at which messages that steer are heard (T9). One that a limit leaves
    without an answer is not: it stays in the queue. Where there are hooks, nothing is begun behind
    one in the same commit: they hear of it first. Nor is a call begun that is to be judged first:
    then the tools stay due.
    """
    if turn.cancel_requested:
        return cancelled(turn)
    if turn.pause_requested:
        return (e.TurnPaused(cause=PauseCause.PERSON, requested_at=at),)
    limits = turn.limits_under(agent)
    heard = steered(turn)
    after = advance(turn, heard)
    broken = broken_limit(after, agent, at=at)
    if broken is not None:
        return _stopped_by(broken, turn, limits, at)
    if heard and agent.has_hooks:
        return heard
    if isinstance(after.state, ToolsDue):
        return _begin_tools(after, agent, attempt_id, judged, at=at)
    if after.questions:
        return (*heard, *asking(after, agent.wait, at=at))
    if isinstance(after.state, CompactionDue):
        return (*heard, *_begin_compaction(after, attempt_id))
    return (*heard, *_begin_model(after, agent, attempt_id))


def _stopped_by(broken: Broken, turn: Turn, limits: Limits, at: datetime) -> tuple[e.Event, ...]:
    if limits.is_blocking:
        return (e.TurnPaused(cause=PauseCause.LIMIT, requested_at=at, limit=broken.limit),)
    return (*closing(turn, _LIMIT_WORDS, InterruptionReason.LIMIT_REACHED), _ended_by(broken))


def _ended_by(broken: Broken) -> e.Event:
    match broken.limit:
        case LimitName.ITERATIONS:
            return e.MaxIterationsReached(used=int(broken.used), allowed=int(broken.allowed))
        case LimitName.STEPS:
            return e.MaxStepsReached(used=int(broken.used), allowed=int(broken.allowed))
        case _:
            return e.BudgetExceeded(reason=broken.limit, used=broken.used, allowed=broken.allowed)


def _begin_model(turn: Turn, agent: Agent, attempt_id: AttemptId) -> tuple[e.Event, ...]:
    started = e.ModelStarted(
        attempt_id=attempt_id,
        model_attempt=turn.counters.model_attempts + 1,
        remaining_iterations=remaining_iterations(turn, turn.limits_under(agent)),
    )
    return (_step_started(turn), started)


def _begin_compaction(turn: Turn, attempt_id: AttemptId) -> tuple[e.Event, ...]:
    attempt = turn.counters.model_attempts + 1
    started = e.CompactionStarted(attempt_id=attempt_id, model_attempt=attempt)
    return (_step_started(turn), started)


def _begin_tools(
    turn: Turn, agent: Agent, attempt_id: AttemptId, judged: Judged, *, at: datetime
) -> tuple[e.Event, ...]:
    """What may move in the open round moves; where it leaves nothing in flight the turn goes on.

    A wait is opened in a step of its own: begun, asked, ended, in one commit (case 140).
    """
    if is_undecided(turn, agent, judged):
        return failed(turn, "policy_failed")
    moved = moves(turn, agent, attempt_id, judged, at=at)
    if not moved:
        return resting(turn, agent, judged, at=at)
    events: tuple[e.Event, ...] = (_step_started(turn), *moved)
    after = advance(turn, events)
    if any(call.in_flight for call in after.open_calls):
        return events
    events = (*events, end_step(after))
    if after.waiting_calls and not is_undecided(after, agent, judged):
        return (*events, *resting(after, agent, judged, at=at))
    return then_begin(turn, events, agent, attempt_id, at=at, judged=judged)


def end_step(turn: Turn) -> e.StepCompleted:
    """The step that is open has ended, well or not."""
    return e.StepCompleted(step=turn.counters.steps)


def cancelled(turn: Turn) -> tuple[e.Event, ...]:
    """The turn ends as cancelled, its history closed."""
    return (*closing(turn, _CANCEL_WORDS, InterruptionReason.TURN_CANCELLED), e.TurnCancelled())


def failed(turn: Turn, reason: str, detail: str = "") -> tuple[e.Event, ...]:
    """The turn ends as failed, its history closed."""
    closed = closing(turn, _FAILED_WORDS, InterruptionReason.TURN_FAILED)
    return (*closed, e.TurnFailed(reason=reason, detail=detail))


def then_begin(
    turn: Turn,
    events: tuple[e.Event, ...],
    agent: Agent,
    attempt_id: AttemptId,
    *,
    at: datetime,
    judged: Judged = NOTHING_JUDGED,
) -> tuple[e.Event, ...]:
    """`events`, and in the same commit the beginning of what follows them."""
    after = advance(turn, events)
    return (*events, *begin_next(after, agent, attempt_id, at=at, judged=judged))


def remaining_iterations(turn: Turn, limits: Limits) -> int:
    """Successful model calls the turn may still make; failures do not count (case 115)."""
    return max(limits.max_iterations - turn.counters.model_successes, 0)


def _step_started(turn: Turn) -> e.StepStarted:
    cursor = Cursor.PROCESS_TOOLS if turn.open_calls else Cursor.INVOKE_MODEL
    return e.StepStarted(step=turn.counters.steps + 1, cursor=cursor)


_LIMIT_WORDS = "The turn ended here because it reached a limit."
_CANCEL_WORDS = "The turn was cancelled here."
_FAILED_WORDS = "The turn ended here because of an error."
