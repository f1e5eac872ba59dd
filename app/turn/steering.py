"""Messages that steer a turn: they are heard at its next boundary (T9, cases 91 and 92).

A boundary is where nothing is in flight: behind a model call, and behind the calls of a round that
had begun. Calls that had not begun are answered there without being run, then the messages follow,
and the model is called with all of it. Nothing is aborted for them.
"""

from collections.abc import Iterator
from datetime import datetime

from app.turn import events as e
from app.turn.agent import Agent
from app.turn.evolve import advance
from app.turn.interruption import skipped
from app.turn.limits import broken_limit
from app.turn.state import Turn
from app.turn.transcript import UserMessage


def steered(turn: Turn) -> tuple[e.Event, ...]:
    """The messages that steer, said now, every open call answered before; none, no events."""
    if not turn.steering:
        return ()
    first = turn.steering[0].message_id
    answers = tuple(skipped(call, first) for call in turn.open_calls)
    return (*answers, *_promoted(turn.steering, first_position=turn.next_position))


def can_be_steered(turn: Turn, agent: Agent, *, at: datetime) -> bool:
    """Whether a message waits to be heard and the model may still be called for it."""
    if not turn.steering:
        return False
    after = advance(turn, steered(turn))
    return broken_limit(after, agent, at=at) is None


def _promoted(messages: tuple[UserMessage, ...], *, first_position: int) -> Iterator[e.Event]:
    for position, message in enumerate(messages, start=first_position):
        yield e.InputPromoted(message_id=message.message_id)
        yield e.MessageAdded(position=position, message=message)
