"""Which calls of a round begin, are opened or are answered next, and what the turn does then.

    plain         a local tool that may begin and needs nobody. Where all open calls are plain they
                  run side by side, as far as the limits allow
    sequential    else only the first open call moves, when nothing is in flight: it begins, is put
                  to somebody, or is answered. The others follow in declared order (case 107)
    together      every call moves on its own: what needs somebody is opened, the rest begins (C28)

What stands behind a call that bars it (`app.turn.blocking`) moves in neither way.

What a call's move is depends on what was found out about it:

    allowed       a local tool is entered; an outside one is asked for (T44), which counts as a call
    needs more    an approval, a form: its wait is opened (T40, T43)
    put aside     its wait is opened: its tool has asked, and is not entered again for that
    denied        a rejection is its result (T39); where it makes no sense, an error
    not judged    the policy did not answer: the turn fails, nothing is entered (T41, case 99)
    no judgement  nothing, until the shell has found out
"""

from datetime import datetime

from app.turn import events as e
from app.turn.agent import Agent
from app.turn.blocking import given_up, held_back
from app.turn.evolve import advance
from app.turn.ids import AttemptId, CallId
from app.turn.judging import NOTHING_JUDGED, Judged, judgement_on, kind_of
from app.turn.limits import free_tool_calls
from app.turn.open_calls import OpenCall
from app.turn.opening import opened, suspended, wait_for, wait_outside
from app.turn.rejections import denied
from app.turn.state import Turn
from app.turn.transcript import Outcome, ToolResult
from app.turn.waits import Allowed, ApprovalNeeded, Denied, InputNeeded, NotJudged, Unusable


def moves(
    turn: Turn, agent: Agent, attempt_id: AttemptId, judged: Judged, *, at: datetime
) -> tuple[e.Event, ...]:
    """What happens to the calls that may move now, in declared order.

    A call that is answered makes room for the next, which moves in the same commit. Nothing moves
    in a round at rest before the shell has found out about all that may.
    """
    movable = _movable(turn, agent, judged)
    at_rest = not any(call.in_flight for call in turn.open_calls)
    if at_rest and any(_is_to_be_judged(call, agent, judged, at) for call in movable):
        return ()
    events, now = tuple[e.Event, ...](), turn
    for call in movable:
        moved = _move(now, call, agent, attempt_id, judged, at=at)
        events, now = (*events, *moved), advance(now, moved)
    if not any(isinstance(event, e.ToolRejected | e.ToolFailed) for event in events):
        return events
    barred = given_up(turn, events, agent)
    after = advance(now, barred)
    return (*events, *barred, *moves(after, agent, attempt_id, judged, at=at))


def is_undecided(turn: Turn, agent: Agent, judged: Judged) -> bool:
    """Whether a call would move now of which the policy did not say whether it may."""
    return any(
        isinstance(judgement_on(call, agent, judged), NotJudged)
        for call in _movable(turn, agent, judged)
        if call.wait is None
    )


def resting(turn: Turn, agent: Agent, judged: Judged, *, at: datetime) -> tuple[e.Event, ...]:
    """The turn rests: until a retry is due, or until somebody has answered.

    No events where the shell is to judge a call first.
    """
    movable = _movable(turn, agent, judged)
    if any(_is_to_be_judged(call, agent, judged, at) for call in movable):
        return ()
    retries_at = (call.retry_at for call in movable if call.retry_at and call.retry_at > at)
    due_at = min(retries_at, default=None)
    if due_at is None:
        return suspended(turn, at=at)
    rests = e.TurnSuspended(
        suspension_type="RETRY", record=None, requested_at=at, next_runnable_at=due_at
    )
    retries = max(call.retries for call in turn.open_calls)
    return (rests, e.RetryWasScheduled(retry_count=retries, due_at=due_at))


def next_to_open(turn: Turn, agent: Agent) -> tuple[OpenCall, ...]:
    """The calls that are put aside and may be opened now."""
    movable = _movable(turn, agent, NOTHING_JUDGED)
    return tuple(call for call in movable if call.wait is not None and not call.is_waiting)


def has_due(turn: Turn, agent: Agent | None, *, at: datetime) -> bool:
    """Whether a turn whose calls wait has something to do now.

    Without its agent nobody knows what a call bars, so that every call without an open wait counts.
    """
    if turn.steering or not turn.open_calls:
        return True
    held = frozenset[CallId]() if agent is None else held_back(turn, agent)
    return any(
        not call.is_waiting and (call.retry_at or at) <= at and call.call_id not in held
        for call in turn.open_calls
    )


def _movable(turn: Turn, agent: Agent, judged: Judged) -> tuple[OpenCall, ...]:
    """The calls not in flight whose turn it is, by the order of their round alone."""
    calls, held = turn.open_calls, held_back(turn, agent)
    waiting = tuple(c for c in calls if not c.in_flight and c.call_id not in held)
    if agent.open_waits == "together" or all(_is_plain(call, agent, judged) for call in calls):
        return waiting
    return () if any(call.in_flight for call in calls) else waiting[:1]


def _is_plain(call: OpenCall, agent: Agent, judged: Judged) -> bool:
    is_alone = call.wait is None and not call.approvals and not call.data
    if not is_alone or kind_of(call, agent) != "local":
        return False
    return isinstance(judgement_on(call, agent, judged), Allowed)


def _is_to_be_judged(call: OpenCall, agent: Agent, judged: Judged, at: datetime) -> bool:
    is_due = call.wait is None and (call.retry_at or at) <= at
    return is_due and judgement_on(call, agent, judged) is None


def _move(
    turn: Turn,
    call: OpenCall,
    agent: Agent,
    attempt_id: AttemptId,
    judged: Judged,
    *,
    at: datetime,
) -> tuple[e.Event, ...]:
    if call.is_waiting or (call.retry_at or at) > at:
        return ()
    if call.wait is not None:
        return (opened(call, call.wait, at=at),)
    match judgement_on(call, agent, judged):
        case Allowed(arguments=arguments):
            return _begun(turn, call, agent, attempt_id, arguments, at=at)
        case (ApprovalNeeded() | InputNeeded()) as needed:
            return (opened(call, wait_for(call, needed, agent, stage="policy"), at=at),)
        case Denied() as verdict:
            return (denied(call, verdict),)
        case Unusable(content=content):
            return (_unusable(call, content),)
        case NotJudged() | None:
            return ()


def _begun(
    turn: Turn,
    call: OpenCall,
    agent: Agent,
    attempt_id: AttemptId,
    arguments: str | None,
    *,
    at: datetime,
) -> tuple[e.Event, ...]:
    """A call that may begin is entered, or asked for outside, if the limits leave room for it."""
    spec, limits = agent.tool(call.tool_name), turn.limits_under(agent)
    if free_tool_calls(turn, limits) == 0:
        return ()
    if spec is not None and spec.kind == "external" and arguments is not None:
        return (opened(call, wait_outside(spec, arguments, agent), at=at),)
    if sum(each.in_flight for each in turn.open_calls) >= limits.parallel_tools:
        return ()
    attempt = call.attempt + 1
    return (e.ToolStarted(call_id=call.call_id, attempt_id=attempt_id, attempt=attempt),)


def _unusable(call: OpenCall, content: str) -> e.ToolFailed:
    result = ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=Outcome.ERROR, content=content
    )
    return e.ToolFailed(position=call.position, result=result)
