"""Rules for turns that wait for a person or for somebody outside.

a hook asks the user      the turn waits where it stands, unless somebody has stopped it (T43a)
USER_INPUT                what is said is the answer, and needs to say something (T75)
a command on a call       no call waits for anybody outside yet, so it fits no state: refused as
                          one at work, as another wait, or as ended (T94, T95, T63)
"""

from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.decide_requests import answered, does_not_fit, resumed
from app.turn.errors import AnswerInvalid, CorrelationMismatch
from app.turn.evolve import advance
from app.turn.next_step import Rest, next_step
from app.turn.questions import asking
from app.turn.state import (
    CallingModel,
    RetryScheduled,
    RunningTools,
    ToolRetryScheduled,
    Turn,
    WaitingForUser,
)
from app.turn.status import PauseCause
from app.turn.steps import cancelled, end_step

_NAMES: dict[type[i.CallCommand], str] = {
    i.ApproveTool: "APPROVE_TOOL",
    i.RejectTool: "REJECT_TOOL",
    i.GiveToolResult: "TOOL_RESULT",
    i.GiveToolError: "TOOL_ERROR",
}


def call_commanded(turn: Turn, given: i.CallCommand) -> tuple[e.Event, ...]:
    """Refused by the turn's state, whatever call it names.

    Raises:
        TurnNotBlocked, WrongCommand, TurnTerminal: always one of them.
    """
    raise does_not_fit(turn, _NAMES[type(given)])


def input_given(turn: Turn, given: i.UserInput, *, at: datetime) -> tuple[e.Event, ...]:
    """The answer to a plain question: text, and nothing that only a call or a form would take.

    Raises:
        TurnNotBlocked, WrongCommand, TurnTerminal: the turn asks nothing.
        CorrelationMismatch: it names a call.
        AnswerInvalid: it says nothing, or brings values for a form.
    """
    if not isinstance(turn.state, WaitingForUser):
        raise does_not_fit(turn, "USER_INPUT")
    if given.call_id is not None:
        detail = f"no call waits for an answer, so not {given.call_id!r}; leave the callId out"
        raise CorrelationMismatch(turn, detail)
    if given.data is not None:
        raise AnswerInvalid(turn, "data: the question is a plain one; answer it with text")
    if given.message is None:
        raise AnswerInvalid(turn, "text: an answer needs some")
    return answered(turn, given.message, "USER_INPUT", at=at)


def user_asked(turn: Turn, given: i.UserAsked, *, at: datetime) -> tuple[e.Event, ...]:
    """The turn waits for the user where the hook has asked.

    That is in a model call that is begun, or where a step is due; anywhere else it is nothing new.
    """
    if isinstance(turn.state, RunningTools) or is_at_rest(turn, at=at):
        return ()
    before: tuple[e.Event, ...] = (end_step(turn),) if isinstance(turn.state, CallingModel) else ()
    if turn.cancel_requested:
        return (*before, *cancelled(turn))
    if turn.pause_requested:
        return (*before, e.TurnPaused(cause=PauseCause.PERSON, requested_at=at))
    if isinstance(turn.state, RetryScheduled | ToolRetryScheduled):
        before = (resumed(turn, "RETRY", at=at),)
    return (*before, *asking(advance(turn, before), given.question, at=at, heard=given.heard))


def is_at_rest(turn: Turn, *, at: datetime) -> bool:
    """Whether nothing is due now and nothing is in flight."""
    return isinstance(next_step(turn, at=at), Rest)
