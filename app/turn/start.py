"""How a turn comes into being: its first events."""

from dataclasses import replace
from datetime import datetime, timedelta

from app.turn import events as e
from app.turn.ids import Identity
from app.turn.state import Turn
from app.turn.transcript import UserMessage


def start(
    identity: Identity,
    message: UserMessage,
    *,
    first_position: int,
    at: datetime,
    held: bool = False,
) -> tuple[e.Event, ...]:
    """A READY turn opened by a user's message.

    Args:
        identity: whose turn it is, and by which exact agent version.
        message: what opens it.
        first_position: the first free place in the conversation's transcript; from 0.
        at: now.
        held: whether no worker takes the turn before it is told to run (T11a).
    """
    return (
        e.TurnStarted(identity=identity, first_position=first_position, created_at=at, held=held),
        e.MessageAdded(position=first_position, message=message),
    )


def succeed(ended: Turn, identity: Identity, *, at: datetime) -> tuple[e.Event, ...]:
    """The READY turn that the queue of an ended one opens; no events when nothing is queued.

    The first message of the queue opens it, the others are inherited in their order. A message that
    was to steer the ended turn found no boundary: now it waits like any other (T8, case 93).

    Args:
        ended: the turn, in its last state.
        identity: of the turn to be opened.
        at: now. A turn is never as old as the one before it, whatever two clocks say.
    """
    if not ended.queue:
        return ()
    first = ended.queue[0].message
    return (
        e.TurnStarted(
            identity=identity,
            first_position=ended.next_position,
            created_at=max(at, ended.created_at + timedelta(microseconds=1)),
            queue=tuple(replace(queued, mode="queue") for queued in ended.queue),
        ),
        e.InputPromoted(message_id=first.message_id),
        e.MessageAdded(position=ended.next_position, message=first),
    )
