"""Rules for the end of a model call.

answer with calls         stored with its calls before any tool runs (`decide_asked`)
final answer              the turn completes (T26), or what `decide_output` says; so does one that
                          was cut with usable text (T30), and one with an unknown stop (T32b)
paused, cut, empty        the model may be called once more (`going_on`: T29, T30, T30a)
a hook's question         the text is kept, the calls are withheld, the turn waits (T43a)
while a message steers    a finished one is kept, the message follows it, the model goes on (T9)
refusal                   the calls that came with it are withheld (T32, C23)
nothing usable            a failure like any other (`decide_failures`): the turn waits (T30, T30a)
broken off by its model   likewise; its text is kept as a partial message (T31, T32a)
cancellation asked for    beats all of them; the answer is dropped (T37, case 123)
"""

from dataclasses import replace
from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.answer_events import (
    CALLS_NOT_TRUSTED,
    completed,
    pieces,
    stopped,
    unheard,
    untrusted_tools,
)
from app.turn.decide_asked import with_calls
from app.turn.decide_failures import gave_up_on
from app.turn.decide_output import concluded
from app.turn.evolve import advance
from app.turn.failures import FailureType, ModelFailure, TokenLimitPhase
from app.turn.going_on import called_once_more, goes_on, is_empty
from app.turn.questions import asking
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.steering import can_be_steered
from app.turn.steps import cancelled, end_step, then_begin
from app.turn.transcript import FINISHED, ModelAnswer, StopReason


def text_stored(state: CallingModel, given: i.ModelWrote) -> tuple[e.Event, ...]:
    """What is new of the open answer."""
    return pieces(state, given.text, given.reasoning)


def answered(
    turn: Turn, state: CallingModel, given: i.ModelAnswered, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    """The turn has a final answer, or calls to run, or an answer that is none (T26 to T32b)."""
    if turn.cancel_requested:
        return (unheard(given), end_step(turn), *cancelled(turn))
    if given.question is not None:
        return _asked(turn, state, given, given.question, agent, at)
    if given.answer.tool_calls and given.answer.stop_reason not in CALLS_NOT_TRUSTED:
        return with_calls(turn, state, given, agent, at=at)
    if goes_on(turn, given.answer, agent):
        return called_once_more(turn, state, given, agent, at=at)
    useless = _useless(given.answer)
    if useless is not None:
        return _gave_up(turn, state, given, useless, agent, at)
    return _final(turn, state, given, agent, at=at)


def _gave_up(
    turn: Turn,
    state: CallingModel,
    given: i.ModelAnswered,
    failure: ModelFailure,
    agent: Agent,
    at: datetime,
) -> tuple[e.Event, ...]:
    """An answer that is none is a failure; one that says nothing has been asked again already."""
    gave_up = i.ModelGaveUp(
        attempt_id=given.attempt_id,
        failure=replace(failure, provider=given.answer.provider, model=given.answer.model),
        failure_id=given.failure_id,
        next_attempt_id=given.next_attempt_id,
        can_compact=given.can_compact,
        asked=given.asked,
        text=given.answer.text,
        reasoning=given.answer.reasoning,
        usage=given.answer.usage,
    )
    may_retry = not is_empty(given.answer)
    return gave_up_on(turn, state, gave_up, at=at, agent=agent, may_retry=may_retry)


def _useless(answer: ModelAnswer) -> ModelFailure | None:
    """The failure that an answer amounts to which nobody can use, or which was broken off."""
    match answer.stop_reason:
        case StopReason.INTERRUPTED:
            return _unavailable("the answer broke off before its end", untrusted_tools(answer))
        case StopReason.CONTEXT_FULL:
            return _token_limit("the context window is full", TokenLimitPhase.TOTAL_CONTEXT)
        case StopReason.MAX_OUTPUT if not answer.text.strip():
            said = "the output limit was reached before any text"
            return _token_limit(said, TokenLimitPhase.OUTPUT)
        case _ if is_empty(answer):
            return _unavailable("the model ended its answers without text or calls")
        case _:
            return None


def _unavailable(message: str, withheld: tuple[str, ...] = ()) -> ModelFailure:
    return ModelFailure(
        type=FailureType.UNAVAILABLE, message=message, retryable=True, withheld_tools=withheld
    )


def _token_limit(message: str, phase: TokenLimitPhase) -> ModelFailure:
    return ModelFailure(
        type=FailureType.TOKEN_LIMIT_EXCEEDED,
        message=message,
        retryable=False,
        token_limit_phase=phase,
    )


def _final(
    turn: Turn, state: CallingModel, given: i.ModelAnswered, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    said_at = completed(turn, given, agent, calls=())
    said = (
        *pieces(state, given.answer.text, given.answer.reasoning),
        said_at,
        *stopped(given, untrusted_tools(given.answer)),
    )
    ended = (*said, end_step(turn))
    is_finished = given.answer.stop_reason in FINISHED
    if is_finished and can_be_steered(advance(turn, ended), agent, at=at):
        return then_begin(turn, ended, agent, given.next_attempt_id, at=at)
    return concluded(turn, said, said_at, given, agent, at=at)


def _asked(
    turn: Turn,
    state: CallingModel,
    given: i.ModelAnswered,
    question: str,
    agent: Agent,
    at: datetime,
) -> tuple[e.Event, ...]:
    """A hook puts a question behind the answer: its text is kept, its calls are not run (C23)."""
    answer = given.answer
    withheld = tuple(call.tool_name for call in answer.tool_calls)
    events: tuple[e.Event, ...] = (
        *pieces(state, answer.text, answer.reasoning),
        completed(turn, given, agent, calls=()),
        *stopped(given, withheld),
        end_step(turn),
    )
    return (*events, *asking(advance(turn, events), agent.wait, question, at=at))
