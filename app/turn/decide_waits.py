"""Rules for plain questions to the user; what calls wait for is the affair of `decide_calls`.

a hook asks the user      the turn waits where it stands, unless somebody has stopped it (T43a)
USER_INPUT                what is said is the answer, and needs to say something (T75)
"""

from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.decide_calls import form_filled
from app.turn.decide_requests import answered
from app.turn.errors import AnswerInvalid, CorrelationMismatch, WaitExpired
from app.turn.evolve import advance
from app.turn.next_step import Rest, next_step
from app.turn.questions import asking, is_late
from app.turn.resuming import resumed
from app.turn.state import Turn
from app.turn.states import (
    CallingModel,
    Compacting,
    RetryScheduled,
    RunningTools,
    ToolRetryScheduled,
    WaitingForUser,
)
from app.turn.status import PauseCause
from app.turn.steps import cancelled, end_step


def input_given(
    turn: Turn, given: i.UserInput, *, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    """The answer to a plain question: text, and nothing that only a call or a form would take.

    One that names a call, or comes to a turn that has no plain question, is for a form
    (`decide_calls.form_filled`).

    Raises:
        TurnNotBlocked, WrongCommand, TurnTerminal: the turn asks nothing.
        CorrelationMismatch: it names a call, and none waits for the user.
        WaitExpired: it comes too late.
        AnswerInvalid: it says nothing, or brings values for a form.
    """
    if not isinstance(turn.state, WaitingForUser) or (given.call_id and turn.waiting_calls):
        return form_filled(turn, given, at=at, agent=agent)
    if given.call_id is not None:
        detail = f"no call waits for an answer, so not {given.call_id!r}; leave the callId out"
        raise CorrelationMismatch(turn, detail)
    if is_late(turn.state, at=at):
        raise WaitExpired(turn, "the time for an answer is over")
    if given.data is not None:
        raise AnswerInvalid(turn, "data: the question is a plain one; answer it with text")
    if given.message is None:
        raise AnswerInvalid(turn, "text: an answer needs some")
    return answered(turn, given.message, "USER_INPUT", at=at)


def user_asked(
    turn: Turn, given: i.UserAsked, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    """The turn waits for the user where the hook has asked.

    That is in a model call that is begun, or where a step is due; anywhere else it is nothing new.
    """
    if isinstance(turn.state, RunningTools) or is_at_rest(turn, at=at):
        return ()
    is_begun = isinstance(turn.state, CallingModel | Compacting)
    before: tuple[e.Event, ...] = (end_step(turn),) if is_begun else ()
    if turn.cancel_requested:
        return (*before, *cancelled(turn))
    if turn.pause_requested:
        return (*before, e.TurnPaused(cause=PauseCause.PERSON, requested_at=at))
    if isinstance(turn.state, RetryScheduled | ToolRetryScheduled):
        before = (resumed(turn, "RETRY", at=at),)
    after = advance(turn, before)
    return (*before, *asking(after, agent.wait, given.question, at=at, heard=given.heard))


def is_at_rest(turn: Turn, *, at: datetime) -> bool:
    """Whether nothing is due now and nothing is in flight."""
    return isinstance(next_step(turn, at=at), Rest)
