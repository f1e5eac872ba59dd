"""Rules for the end of an answer, where the agent declares what its final answer must be (C26).

no declaration     the turn completes
the answer fits    its value is a fact of its own, then the turn completes
it does not        the answer stays, a notice says what is wrong with it, and the model is called
                   once more: a call like any other, within the turn's limits
it does not again  the turn fails (`output_invalid`)

The answer, the notice and the begin of the next call are one commit. So whoever takes over from a
worker that died finds all of it or nothing, and neither repeats nor forgets the notice.
"""

from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.evolve import advance
from app.turn.state import Turn
from app.turn.steps import end_step, failed, then_begin
from app.turn.transcript import NoticeMessage


def concluded(
    turn: Turn,
    said: tuple[e.Event, ...],
    completed: e.ModelCompleted,
    given: i.ModelAnswered,
    agent: Agent,
    *,
    at: datetime,
) -> tuple[e.Event, ...]:
    """`said`, and what follows from it: the end of the turn, or the one repair.

    Args:
        turn: before the answer.
        said: the answer's events; `completed` is one of them.
        completed: where the answer stands.
        given: the report of the answer.
        agent: whose limits hold for the repair.
        at: now.
    """
    first = advance(turn, said).parts_from
    ended = e.TurnCompleted(
        stop_reason=given.answer.stop_reason,
        position=completed.position,
        begins_at=None if first == completed.position else first,
    )
    match given.output:
        case None:
            return (*said, end_step(turn), ended)
        case i.ValidOutput(value=value):
            return (*said, e.OutputReady(output=value), end_step(turn), ended)
        case i.InvalidOutput(problem=problem) if turn.is_repaired:
            after = advance(turn, said)
            return (*said, end_step(turn), *failed(after, "output_invalid", problem))
        case i.InvalidOutput(problem=problem):
            place = advance(turn, said).next_position
            notice = NoticeMessage(text=_NOTICE.format(problem=problem), cause="output_invalid")
            told = e.MessageAdded(position=place, message=notice)
            events = (*said, end_step(turn), told)
            return then_begin(turn, events, agent, given.next_attempt_id, at=at)


_NOTICE = (
    "Your answer does not fit the JSON Schema that it must fit.\n{problem}\n"
    "Give the answer again: one JSON value that fits the schema, and nothing else."
)
