"""How a turn changes: one event in, the next value out. Total, and always `version + 1`.

Nothing is decided here. An event that does not fit the state it meets means that the journal is
not the journal of this turn, which is a fault of ours (`JournalError`).
"""

from collections.abc import Iterable

from app.turn import events as e
from app.turn.evolve_calls import call_changed, failing, known_undone, without_call
from app.turn.evolve_model import compaction_changed, model_changed
from app.turn.evolve_stops import stop_changed
from app.turn.evolve_waits import wait_changed
from app.turn.journal import JournalError
from app.turn.replacing import replace
from app.turn.state import Turn
from app.turn.states import (
    Cancelled,
    Compacting,
    CompactionDue,
    Completed,
    Failed,
    LimitReached,
    ModelDue,
    Paused,
    Ready,
    RunningTools,
    Terminal,
    ToolsDue,
)
from app.turn.status import LimitName
from app.turn.transcript import NoticeMessage, UserMessage


def begin(event: e.TurnStarted) -> Turn:
    """The turn as its first event makes it."""
    return Turn(
        identity=event.identity,
        version=1,
        state=Ready(held=event.held),
        next_position=event.first_position,
        created_at=event.created_at,
        queue=event.queue,
        never_replay=event.never_replay,
        resumes_turn_id=event.resumes_turn_id,
        model=event.model,
        is_changed=event.model is not None,
    )


def fold(events: Iterable[e.Event]) -> Turn:
    """The turn that a whole journal tells of.

    Raises:
        JournalError: when it does not begin with `TurnStarted`.
    """
    iterator = iter(events)
    first = next(iterator, None)
    if not isinstance(first, e.TurnStarted):
        message = "a journal begins with TURN_STARTED"
        raise JournalError(message)
    return advance(begin(first), iterator)


def advance(turn: Turn, events: Iterable[e.Event]) -> Turn:
    """`evolve` over several events."""
    for event in events:
        turn = evolve(turn, event)
    return turn


def evolve(turn: Turn, event: e.Event) -> Turn:
    """The turn after `event`."""
    return replace(_changed(turn, event), version=turn.version + 1)


def _changed(turn: Turn, event: e.Event) -> Turn:  # noqa: C901, PLR0912 - it only routes
    match event:
        case (
            e.ModelStarted()
            | e.ModelText()
            | e.ModelReasoning()
            | e.ModelCompleted()
            | e.ModelFailed()
            | e.ModelStopped()
        ):
            return model_changed(turn, event)
        case e.ToolRequested() | e.ToolStarted() | e.ToolAttemptFailed():
            return call_changed(turn, event)
        case e.ToolInterrupted(position=position) if isinstance(turn.state, Ready):
            return replace(
                turn, next_position=position + 1
            )  # a call of the history it goes on with
        case e.ToolFailed(fails_turn=True, failure=failure):
            return without_call(failing(turn, failure), event.result.call_id)
        case e.ToolCompleted(question=str(question)):
            asking = replace(turn, questions=(*turn.questions, question))
            return without_call(asking, event.result.call_id)
        case (
            e.ToolCompleted()
            | e.ToolFailed()
            | e.ToolInterrupted()
            | e.ToolSkipped()
            | e.ToolRejected()
            | e.ExternalToolCompleted()
            | e.ExternalToolFailed()
        ):
            return without_call(turn, event.result.call_id)
        case (
            e.ToolApprovalRequested()
            | e.ToolInputRequested()
            | e.ExternalToolRequested()
            | e.ToolPutAside()
            | e.ToolApprovalDecided()
            | e.ToolInputReceived()
            | e.ExternalToolCancelRequested()
            | e.WaitExpired()
        ):
            return wait_changed(turn, event)
        case e.TurnSuspended() | e.RetryWasScheduled() | e.TurnPaused() | e.TurnResumed():
            return stop_changed(turn, event)
        case e.InputQueued() | e.InputPromoted() | e.InputWithdrawn():
            return _queue_changed(turn, event)
        case e.StepRecovered(cause=cause):
            return replace(_recovered(turn, event), lost_to=cause)
        case e.MessageAdded():
            return _said(turn, event)
        case e.OutputReady(output=output):
            return replace(turn, output=output)
        case e.StepStarted():
            return replace(turn, counters=turn.counters.plus(steps=1), unread=(), is_taken_up=True)
        case e.CompactionStarted() | e.ContextCompacted() | e.CompactionFailed():
            return compaction_changed(turn, event)
        case e.CancellationRequested():
            return replace(turn, cancel_requested=True)
        case e.PauseRequested():
            return replace(turn, pause_requested=True)
        case e.StepCompleted():
            return turn if turn.lost_to is None else replace(turn, lost_to=None)
        case _:
            return replace(turn, state=_ended(event))


def _queue_changed(turn: Turn, event: e.InputQueued | e.InputPromoted | e.InputWithdrawn) -> Turn:
    if isinstance(event, e.InputQueued):
        return replace(turn, queue=(*turn.queue, event.queued))
    left = tuple(q for q in turn.queue if q.message.message_id != event.message_id)
    if isinstance(event, e.InputWithdrawn):
        return replace(turn, queue=left)
    # What a user says begins a new chain of retries, as every message does (2.3).
    counters = replace(turn.counters, consecutive_retries=0)
    return replace(turn, queue=left, counters=counters)


def _ended(
    event: e.TurnCompleted
    | e.TurnFailed
    | e.TurnCancelled
    | e.MaxIterationsReached
    | e.MaxStepsReached
    | e.BudgetExceeded
    | e.TurnStarted,
) -> Terminal:
    match event:
        case e.TurnCompleted(stop_reason=stop_reason, position=position, begins_at=begins_at):
            return Completed(stop_reason=stop_reason, position=position, begins_at=begins_at)
        case e.TurnFailed(reason=reason):
            return Failed(reason=reason)
        case e.TurnCancelled():
            return Cancelled()
        case e.MaxIterationsReached(used=used, allowed=allowed):
            return LimitReached(limit=LimitName.ITERATIONS, used=used, allowed=allowed)
        case e.MaxStepsReached(used=used, allowed=allowed):
            return LimitReached(limit=LimitName.STEPS, used=used, allowed=allowed)
        case e.BudgetExceeded(reason=reason, used=used, allowed=allowed):
            return LimitReached(limit=reason, used=used, allowed=allowed)
        case e.TurnStarted():
            message = "a turn starts once"
            raise JournalError(message)


def _said(turn: Turn, event: e.MessageAdded) -> Turn:
    cause = event.message.cause if isinstance(event.message, NoticeMessage) else None
    is_users = isinstance(event.message, UserMessage)
    return replace(
        turn,
        next_position=event.position + 1,
        is_repaired=turn.is_repaired or cause == "output_invalid",
        told_at=event.position if cause == "retry_response" else turn.told_at,
        parts_from=turn.parts_from if cause == "continue_response" else None,
        unread=(*turn.unread, event.position) if is_users else turn.unread,
    )


def _recovered(turn: Turn, event: e.StepRecovered) -> Turn:
    """Nothing is in flight any more; what had been started stays marked by its attempts.

    A turn that is opened to go on with a history is READY like any other, and one that is paused
    stays so until it goes on.
    """
    if isinstance(turn.state, Ready):
        return turn
    if isinstance(turn.state, Paused):
        return replace(turn, state=replace(turn.state, lost=None))
    if isinstance(turn.state, Compacting):
        due = CompactionDue(record=turn.state.record, is_asked=turn.state.is_asked)
        return replace(turn, state=due)
    if isinstance(turn.state, RunningTools):
        undone = {each.call_id for each in event.calls if each.probed == "not_done"}
        ended = tuple(replace(call, in_flight=False) for call in turn.state.calls)
        calls = tuple(known_undone(call) if call.call_id in undone else call for call in ended)
        return replace(turn, state=ToolsDue(asked_at=turn.state.asked_at, calls=calls))
    return replace(turn, state=ModelDue())
