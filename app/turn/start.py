"""How a turn comes into being: its first events."""

from datetime import datetime

from app.turn import events as e
from app.turn.ids import Identity
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
