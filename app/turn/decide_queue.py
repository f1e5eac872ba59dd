"""Rules for messages that wait while the turn is at work (turn semantics, T8 and T9).

queue         said when the turn has ended: it opens the conversation's next turn, in order
steer         said at the turn's next boundary (`app.turn.steering`); one that finds no boundary
              before the turn ends is said like a queued one, so that none is lost
withdrawn     not said at all, as long as it has not been said

While a turn waits, what its queue holds stays there; a new message goes on with the turn (2.3).
"""

from datetime import datetime
from typing import Literal

from app.turn import events as e
from app.turn import inputs as i
from app.turn.errors import ConversationBusy, QueuedInputNotFound, TurnTerminal
from app.turn.queued_input import QueuedInput
from app.turn.state import Turn
from app.turn.transcript import TextPart, UserMessage

MOST_QUEUED = 20
"""Messages in the queue of one turn; each is part of the stored turn."""
MOST_CHARACTERS_QUEUED = 400_000
"""Of all of them together: the turn is written anew at every commit, its queue with it."""


def queued(
    turn: Turn, message: UserMessage, mode: Literal["queue", "steer"], *, at: datetime
) -> tuple[e.Event, ...]:
    """The message waits; for a turn that is READY or RUNNING.

    Raises:
        ConversationBusy: the queue is full or would hold too much, or the turn is about to be
            cancelled and so cannot be steered.
    """
    turn_id = turn.identity.turn_id
    if len(turn.queue) >= MOST_QUEUED:
        detail = f"{MOST_QUEUED} messages wait for turn {turn_id!r} already; withdraw one, or wait"
        raise ConversationBusy(turn, detail)
    if _size(turn) + _length(message) > MOST_CHARACTERS_QUEUED:
        detail = (
            f"with this message more than {MOST_CHARACTERS_QUEUED} characters would wait for turn "
            f"{turn_id!r}; withdraw another, or wait"
        )
        raise ConversationBusy(turn, detail)
    if mode == "steer" and turn.cancel_requested:
        detail = f"turn {turn_id!r} is about to be cancelled; queue the message for the next one"
        raise ConversationBusy(turn, detail)
    return (e.InputQueued(queued=QueuedInput(message=message, mode=mode, queued_at=at)),)


def is_full(turn: Turn) -> bool:
    """Whether not even a short message may be queued."""
    return len(turn.queue) >= MOST_QUEUED or _size(turn) >= MOST_CHARACTERS_QUEUED


def _size(turn: Turn) -> int:
    return sum(_length(queued.message) for queued in turn.queue)


def _length(message: UserMessage) -> int:
    return sum(
        len(part.text) if isinstance(part, TextPart) else len(part.url) for part in message.content
    )


def withdrawn(turn: Turn, given: i.Withdraw) -> tuple[e.Event, ...]:
    """The message leaves the queue, whatever the turn does or waits for.

    Raises:
        TurnTerminal: the turn has ended, and its queue is the next one's.
        QueuedInputNotFound: the queue holds no such message.
    """
    if turn.is_terminal:
        raise TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    if all(queued.message.message_id != given.message_id for queued in turn.queue):
        detail = f"message {given.message_id!r} is not in the queue of this conversation"
        raise QueuedInputNotFound(turn, detail)
    return (e.InputWithdrawn(message_id=given.message_id),)
