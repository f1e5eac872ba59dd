"""The one place that says what may happen to a turn: `decide(turn, input) -> events`.

Theory of operation. A turn changes by events only, and events come from here only. The function
is pure: time, ids, chance and the agent's rules are arguments. It raises `Rejected` for a request
that does not fit; it never raises for a report. No events means "nothing new".

A report names the attempt it speaks of. If that is not the attempt in flight, somebody else has
taken the turn on in the meantime (a cancellation, another worker after a lost claim), and the
report is stale: it yields nothing. That single comparison is what makes every race between a
worker and the rest of the world harmless; the store adds the fence (version and claim epoch).

The case that is easy to miss: `CancellationRequested` does not end the attempt. The flag is seen
at the next report of the worker, or at the next begin by whoever claims the turn, and wins over
whatever that report says (T22, T37).

Behind the match one module per kind of input: `decide_requests`, `decide_calls`, `decide_waits`,
`decide_queue`, `decide_model`, `decide_asked`, `decide_failures`, `decide_tools`, `decide_orphans`,
`expiry`, `recovery`; each opens with the rules it owns.
"""

from datetime import datetime

from app.turn import (
    decide_calls,
    decide_failures,
    decide_model,
    decide_orphans,
    decide_queue,
    decide_requests,
    decide_tools,
    decide_waits,
    recovery,
)
from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.compaction import compaction_dropped, compaction_ended
from app.turn.expiry import time_passed
from app.turn.interruption import in_words_of
from app.turn.judging import by_call
from app.turn.next_step import RecoverLostStep, Rest, next_step
from app.turn.orphans import has_crashed
from app.turn.outside import with_cancel_requests
from app.turn.resuming import resumed
from app.turn.state import Turn
from app.turn.states import (
    CallingModel,
    Compacting,
    RetryScheduled,
    RunningTools,
    ToolRetryScheduled,
)
from app.turn.steps import begin_next, cancelled, end_step, failed, then_begin


def decide(turn: Turn, given: i.Input, *, at: datetime, agent: Agent) -> tuple[e.Event, ...]:
    """What happens to `turn` when it is told `given` at the moment `at`.

    Raises:
        Rejected: a request does not fit the turn as it is. Reports are never refused.
    """
    return _told(turn, _decided(turn, given, at=at, agent=agent), agent)


def _decided(  # noqa: C901, PLR0912 - it only routes
    turn: Turn, given: i.Input, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    match given:
        case i.BeginStep():
            return _begun(turn, given, at=at, agent=agent)
        case (
            i.PostMessage()
            | i.Withdraw()
            | i.RetryModel()
            | i.Retry()
            | i.ContinueNow()
            | i.Resume()
            | i.Replan()
            | i.Run()
            | i.UserInput()
            | i.ApproveTool()
            | i.RejectTool()
            | i.GiveToolResult()
            | i.GiveToolError()
            | i.Pause()
            | i.Cancel()
        ):
            return _requested(turn, given, at=at, agent=agent)
        case i.TimePassed():
            return time_passed(turn, at=at, agent=agent)
        case _ if given.attempt_id != turn.attempt_in_flight:
            return ()
        case i.StepLost() if isinstance(turn.state, CallingModel | Compacting | RunningTools):
            return recovery.step_lost(turn, turn.state, given, agent, at=at)
        case i.WorkerLost():
            return decide_orphans.taken_over(turn, given, agent, at=at)
        case _ if has_crashed(turn.state):
            return ()  # of a worker that is gone, as everybody knows
        case i.UserAsked():
            return decide_waits.user_asked(turn, given, at=at, agent=agent)
        case i.StepCrashed():
            return _crashed(turn, given, at=at, agent=agent)
        case i.StepAbandoned():
            return _dropped(turn, given, at=at, agent=agent)
        case i.ToolsFinished() if isinstance(turn.state, RunningTools):
            return decide_tools.tools_finished(turn, turn.state, given, agent, at=at)
        case i.CompactionEnded():
            if not isinstance(turn.state, Compacting):
                return ()
            return compaction_ended(turn, turn.state, given, at=at, agent=agent)
        case i.ToolsFinished() | i.StepLost():
            return ()
        case _:
            return _model_reported(turn, given, at=at, agent=agent)


def decide_request(
    turn: Turn, given: i.Request | i.TimePassed, *, at: datetime, agent: Agent | None = None
) -> tuple[e.Event, ...]:
    """`decide` for what needs no agent: a person's request, so that cancelling always works (T97).

    Args:
        turn: as it is.
        given: what is asked, or that time has passed.
        at: now.
        agent: the turn's, where it is there: calls that are closed are told of in its words, and
            those that one of its tools bars are known.

    Raises:
        Rejected: the request does not fit the turn as it is.
    """
    if isinstance(given, i.TimePassed):
        return _told(turn, time_passed(turn, at=at, agent=agent), agent)
    return _told(turn, _requested(turn, given, at=at, agent=agent), agent)


def _told(turn: Turn, events: tuple[e.Event, ...], agent: Agent | None) -> tuple[e.Event, ...]:
    """The events with all that follows from calls which are given up, whatever the rule."""
    return in_words_of(agent, turn, with_cancel_requests(turn, events))


def _requested(  # noqa: C901 - it only routes
    turn: Turn, given: i.Request, *, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    match given:
        case i.PostMessage():
            return decide_requests.message_posted(turn, given, at=at, agent=agent)
        case i.Withdraw():
            return decide_queue.withdrawn(turn, given)
        case i.RetryModel():
            return decide_requests.model_retried(turn, given, at=at)
        case i.Retry():
            return decide_requests.scheduled_retry_taken(turn, "RETRY", at=at)
        case i.ContinueNow():
            return decide_requests.scheduled_retry_taken(turn, "CONTINUE", at=at)
        case i.Resume():
            return decide_requests.pause_ended(turn, given, at=at, agent=agent)
        case i.Replan():
            return decide_requests.replanned(turn, given, at=at, agent=agent)
        case i.Run():
            return decide_requests.hold_ended(turn, at=at)
        case i.UserInput():
            return decide_waits.input_given(turn, given, at=at, agent=agent)
        case i.ApproveTool() | i.RejectTool() | i.GiveToolResult() | i.GiveToolError():
            return decide_calls.call_commanded(turn, given, at=at, agent=agent)
        case i.Pause():
            return decide_requests.pause_asked(turn, at=at)
        case i.Cancel():
            return decide_requests.cancel_asked(turn, given)


def _begun(turn: Turn, given: i.BeginStep, *, at: datetime, agent: Agent) -> tuple[e.Event, ...]:
    if isinstance(next_step(turn, at=at), Rest | RecoverLostStep):
        return ()
    judged = by_call(given.judged)
    if not isinstance(turn.state, RetryScheduled | ToolRetryScheduled):
        return begin_next(turn, agent, given.attempt_id, at=at, judged=judged)
    goes_on = (resumed(turn, "RETRY", at=at),)
    return then_begin(turn, goes_on, agent, given.attempt_id, at=at, judged=judged)


def _dropped(
    turn: Turn, given: i.StepAbandoned, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    if isinstance(turn.state, CallingModel):
        return decide_failures.dropped(turn, turn.state, given, agent, at=at)
    if isinstance(turn.state, Compacting):
        return compaction_dropped(turn, at=at)
    return (end_step(turn), *cancelled(turn)) if turn.cancel_requested else ()


def _crashed(
    turn: Turn, given: i.StepCrashed, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    if decide_waits.is_at_rest(turn, at=at):
        return ()
    if isinstance(turn.state, CallingModel):
        return decide_failures.crashed(turn, turn.state, given, agent)
    ended = () if given.attempt_id is None else (end_step(turn),)
    return (*ended, *(cancelled(turn) if turn.cancel_requested else failed(turn, given.reason)))


def _model_reported(
    turn: Turn,
    given: i.ModelWrote | i.ModelAnswered | i.ModelGaveUp | i.ModelRefused,
    *,
    at: datetime,
    agent: Agent,
) -> tuple[e.Event, ...]:
    if not isinstance(turn.state, CallingModel):
        return ()
    match given:
        case i.ModelWrote():
            return decide_model.text_stored(turn.state, given)
        case i.ModelAnswered():
            return decide_model.answered(turn, turn.state, given, at=at, agent=agent)
        case i.ModelGaveUp():
            return decide_failures.gave_up_on(turn, turn.state, given, at=at, agent=agent)
        case i.ModelRefused():
            return decide_failures.refused(turn, turn.state, given, at=at, agent=agent)
