"""Rules for the end of a model call.

answer with calls         stored with its calls before any tool runs (`decide_asked`)
final answer              the turn completes (T26), or what `decide_output` says; cut with usable
                          text it completes (T30)
a hook's question         the text is kept, the calls are withheld, the turn waits (T43a)
while a message steers    a finished one is kept, the message follows it, the model goes on (T9)
refusal                   the calls that came with it are withheld (T32, C23)
nothing usable            a failure like any other (`decide_failures`): the turn waits (T30, T30a)
cancellation asked for    beats all of them; the answer is dropped (T37, case 123)
"""

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
    useless = _useless(given.answer)
    if useless is not None:
        gave_up = i.ModelGaveUp(
            attempt_id=given.attempt_id,
            failure=useless,
            failure_id=given.failure_id,
            usage=given.answer.usage,
        )
        return gave_up_on(turn, state, gave_up, at=at, agent=agent)
    if given.answer.tool_calls and given.answer.stop_reason not in CALLS_NOT_TRUSTED:
        return with_calls(turn, state, given, agent, at=at)
    return _final(turn, state, given, agent, at=at)


def _useless(answer: ModelAnswer) -> ModelFailure | None:
    """The failure that an answer with neither text nor calls amounts to."""
    if answer.tool_calls or answer.text.strip() or answer.stop_reason is StopReason.REFUSAL:
        return None
    if answer.stop_reason is StopReason.MAX_OUTPUT:
        return _token_limit("the output limit was reached before any text", TokenLimitPhase.OUTPUT)
    if answer.stop_reason is StopReason.CONTEXT_FULL:
        return _token_limit("the context window is full", TokenLimitPhase.TOTAL_CONTEXT)
    return ModelFailure(
        type=FailureType.UNAVAILABLE,
        message=f"the model ended with {answer.stop_reason} and neither text nor calls",
        retryable=True,
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
