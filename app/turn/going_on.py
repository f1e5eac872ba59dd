"""Rules for an answer behind which the model is simply called once more.

the provider paused it     sent back as it is, at most five in a row, and nobody is told; the sixth
                           is an end like any other (T29)
cut at its output limit    where the agent wants that: the model is told once to go on, at most
                           `max_continuations` in a row; then it is an end (T30)
neither text nor calls     asked again at most twice, then it is a failure (T30a); it counts as no
                           success, and the turn waits whatever its retry policy says

What comes behind is a call like any other, within the turn's limits, and begins in the commit of
the answer: whoever takes over finds both or neither, so a notice is never said twice.
The parts of an answer that came in several are its messages from `Turn.parts_from` on.
"""

from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.answer_events import completed, pieces, stopped
from app.turn.evolve import advance
from app.turn.resume_notices import notices
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.steps import end_step, then_begin
from app.turn.transcript import FINISHED, ModelAnswer, StopReason

MOST_PAUSES = 5
"""In a row."""
MOST_EMPTY_ANSWERS = 2
"""In a row that are asked again."""


def goes_on(turn: Turn, answer: ModelAnswer, agent: Agent) -> bool:
    """Whether the model is called once more behind an answer without calls."""
    match answer.stop_reason:
        case StopReason.PAUSED:
            return turn.pauses < MOST_PAUSES
        case StopReason.MAX_OUTPUT:
            is_wanted = agent.on_truncated == "continue" and bool(answer.text.strip())
            return is_wanted and turn.continuations < agent.max_continuations
        case _:
            return is_empty(answer) and turn.empty_answers < MOST_EMPTY_ANSWERS


def is_empty(answer: ModelAnswer) -> bool:
    """Whether the model has ended its answer without having said anything."""
    is_said = bool(answer.tool_calls or answer.text.strip())
    return answer.stop_reason in FINISHED and not is_said


def called_once_more(
    turn: Turn, state: CallingModel, given: i.ModelAnswered, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """What of the answer is to be kept is stored, and the next call begins."""
    said = (*pieces(state, given.answer.text, given.answer.reasoning), *_ended(turn, given, agent))
    after = advance(turn, said)
    is_cut = given.answer.stop_reason is StopReason.MAX_OUTPUT
    told = tuple(
        e.MessageAdded(position=after.next_position, message=notice)
        for notice in notices("CONTINUE_RESPONSE" if is_cut else "CALL_MODEL")
    )
    events = (*said, end_step(turn), *told)
    return then_begin(turn, events, agent, given.next_attempt_id, at=at)


def _ended(turn: Turn, given: i.ModelAnswered, agent: Agent) -> tuple[e.Event, ...]:
    if is_empty(given.answer):
        return (
            e.ModelStopped(
                attempt_id=given.attempt_id,
                stop_reason=given.answer.stop_reason,
                raw_stop=given.answer.raw_stop,
                usage=given.answer.usage,
            ),
        )
    is_paused = given.answer.stop_reason is StopReason.PAUSED
    return (
        completed(turn, given, agent, calls=()),
        *(() if is_paused else stopped(given, ())),
    )
