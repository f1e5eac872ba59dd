"""What the end of a wait's time does (turn semantics T89, T91, cases 119 to 121).

It is found by whoever looks at the clock, with no command and no person, and nothing of it is ever
recorded as a person's decision. Each wait that is over is marked, so that it is dealt with once:

    keep             nothing more: late answers are refused, a message still goes on with the turn
    answer_expired   the call has a result that says so; a plain question is answered by a notice
    fail, cancel     the turn ends; where tools are in flight, once they have ended
"""

from datetime import datetime

from app.turn import events as e
from app.turn.agent import Agent, OnExpiry
from app.turn.evolve import advance
from app.turn.interruption import interrupted
from app.turn.open_calls import OpenCall
from app.turn.questions import is_late
from app.turn.resuming import resumed, resumed_if_due
from app.turn.state import Turn
from app.turn.states import RunningTools, WaitingForUser
from app.turn.steps import cancelled, failed
from app.turn.transcript import InterruptionReason, NoticeMessage, Outcome
from app.turn.waits import Wait, is_over


def time_passed(turn: Turn, *, at: datetime, agent: Agent | None) -> tuple[e.Event, ...]:
    """Every wait whose time is over is dealt with; none is, or all have been: no events.

    `agent` may be `None` where its version is not there: what is due then stays due.
    """
    calls = [(call, call.wait) for call in turn.waiting_calls if call.wait is not None]
    over = [(call, wait) for call, wait in calls if not wait.is_expired and is_over(wait, at=at)]
    question = _question_over(turn, at)
    marks = (*question, *(_mark(call, wait) for call, wait in over))
    answers = tuple(
        interrupted(call, Outcome.EXPIRED, InterruptionReason.WAIT_EXPIRED)
        for call, wait in over
        if wait.policy.on_expiry == "answer_expired"
    )
    events: tuple[e.Event, ...] = (*marks, *answers)
    ended = _ended(advance(turn, events), {mark.on_expiry for mark in marks})
    if ended or not marks:
        return (*events, *ended)
    if question and question[0].on_expiry == "answer_expired":
        notice = e.MessageAdded(position=turn.next_position, message=_NOTICE)
        return (*events, notice, resumed(turn, "EXPIRY", at=at))
    if not answers:
        return events
    first = answers[0].result.call_id
    return resumed_if_due(turn, events, "EXPIRY", first, at=at, agent=agent)


def _question_over(turn: Turn, at: datetime) -> tuple[e.WaitExpired, ...]:
    state = turn.state
    if isinstance(state, WaitingForUser) and not state.is_expired and is_late(state, at=at):
        return (e.WaitExpired(call_id=None, on_expiry=state.policy.on_expiry),)
    return ()


def _mark(call: OpenCall, wait: Wait) -> e.WaitExpired:
    return e.WaitExpired(call_id=call.call_id, on_expiry=wait.policy.on_expiry)


def _ended(turn: Turn, does: set[OnExpiry]) -> tuple[e.Event, ...]:
    """The end of the turn, if it ends: cancelling wins. A round in flight is let end first."""
    in_flight = isinstance(turn.state, RunningTools)
    if "cancel" in does and in_flight:
        return () if turn.cancel_requested else (e.CancellationRequested(),)
    if "cancel" in does:
        return cancelled(turn)
    return failed(turn, "wait_expired") if "fail" in does and not in_flight else ()


_NOTICE = NoticeMessage(
    text="The user has not answered in time. Go on without their answer.",
    cause="question_expired",
)
