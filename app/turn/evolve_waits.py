"""How waits of a turn's calls change; the part of `app.turn.evolve` that is about them."""

from collections.abc import Callable

from app.turn import events as e
from app.turn.evolve_calls import asked_at, failing, known_undone
from app.turn.ids import CallId
from app.turn.open_calls import OpenCall
from app.turn.replacing import replace
from app.turn.state import Turn
from app.turn.states import (
    Paused,
    RunningTools,
    ToolRetryScheduled,
    ToolsDue,
    WaitingForCalls,
    WaitingForUser,
)
from app.turn.waits import Approval, Wait


def wait_changed(turn: Turn, event: e.WaitEvent) -> Turn:
    """Somebody is asked, has answered, or has let the time pass."""
    match event:
        case e.ToolApprovalRequested() | e.ToolInputRequested() | e.ToolPutAside():
            return _asked(turn, event.call_id, event.wait)
        case e.ExternalToolRequested(call_id=call_id, wait=wait):
            dispatched = _with(turn, call_id, lambda call: replace(call, wait=wait))
            return replace(dispatched, counters=dispatched.counters.plus(tool_calls=1))
        case e.ToolApprovalDecided():
            return _with(turn, event.call_id, lambda call: _decided(call, event))
        case e.ToolInputReceived(call_id=call_id, data=data):
            return _with(
                turn,
                call_id,
                lambda call: replace(
                    call,
                    wait=None,
                    data=call.data if data is None else (*call.data, data),
                    resume="FORM_INPUT",
                    resumes=call.resumes + 1,
                ),
            )
        case e.WaitExpired():
            return _expired(turn, event)
        case e.ExternalToolCancelRequested():
            return turn


def _asked(turn: Turn, call_id: CallId, wait: Wait) -> Turn:
    """A tool that asks has done nothing, so that its entry is given back (case 103)."""
    asking = next(call for call in turn.open_calls if call.call_id == call_id)
    if not asking.in_flight:
        return _with(turn, call_id, lambda call: replace(call, wait=wait))
    changed = _with(turn, call_id, lambda call: _has_asked(call, wait))
    return replace(changed, counters=changed.counters.plus(tool_calls=-1))


def _has_asked(call: OpenCall, wait: Wait) -> OpenCall:
    """Its attempt is over, and is no failed one."""
    return replace(
        call,
        wait=wait,
        in_flight=False,
        asks=call.asks + 1,
        previous_error=None,
        scheduled_at=None,
    )


def _decided(call: OpenCall, event: e.ToolApprovalDecided) -> OpenCall:
    if not event.is_approved:
        return replace(call, wait=None)
    approval = Approval(
        stage=event.stage, fingerprint=event.fingerprint, actor_id=event.actor_id, at=event.at
    )
    known = known_undone(call) if event.stage == "recovery" else call
    return replace(
        known,
        wait=None,
        approvals=(*call.approvals, approval),
        resume="APPROVAL",
        resumes=call.resumes + 1,
    )


def _expired(turn: Turn, event: e.WaitExpired) -> Turn:
    """Marked, so that it is dealt with once; what else it does is told by other events."""
    if event.call_id is None:
        if isinstance(turn.state, WaitingForUser):
            return replace(turn, state=replace(turn.state, is_expired=True))
        return turn
    marked = _with(turn, event.call_id, _marked_expired)
    return failing(marked, "wait_expired") if event.on_expiry == "fail" else marked


def _marked_expired(call: OpenCall) -> OpenCall:
    return replace(call, wait=None if call.wait is None else replace(call.wait, is_expired=True))


def _with(turn: Turn, call_id: CallId, change: Callable[[OpenCall], OpenCall]) -> Turn:
    calls = tuple(change(call) if call.call_id == call_id else call for call in turn.open_calls)
    match turn.state:
        case RunningTools() as state if any(call.in_flight for call in calls):
            return replace(turn, state=replace(state, calls=calls))
        case ToolRetryScheduled() | WaitingForUser() | WaitingForCalls() | Paused() as state:
            return replace(turn, state=replace(state, calls=calls))
        case _:
            return replace(turn, state=ToolsDue(asked_at=asked_at(turn), calls=calls))
