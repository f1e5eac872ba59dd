"""Messages that wait for their turn to come: taking one back."""

from functools import partial

from app.ports import StoredTurn, VersionConflict
from app.services.deps import Caller, Services
from app.services.errors import Contended, ConversationNotFound, NothingQueued
from app.turn.errors import TurnTerminal
from app.turn.ids import ConversationId, MessageId
from app.turn.inputs import Withdraw

_MOST_TRIES = 10


async def withdraw(
    services: Services, caller: Caller, conversation_id: ConversationId, message_id: MessageId
) -> StoredTurn:
    """The conversation's turn, without the message in its queue; its id stays taken.

    A turn that ends in this moment hands its queue on, so the message is looked for in the next.

    Raises:
        ConversationNotFound: there is none, or none that the caller may see.
        NothingQueued, QueuedInputNotFound: the message waits nowhere, or no longer.
        Contended: it lost every race.
    """
    for _ in range(_MOST_TRIES):
        found = await services.conversations.look_up(
            caller.principal.scope, conversation_id, message_id
        )
        if found.conversation is None:
            raise ConversationNotFound(f"there is no conversation {conversation_id!r}")
        if found.active is None:
            raise NothingQueued(f"no turn of conversation {conversation_id!r} has a queue now")
        turn = found.active.turn
        turn_id = turn.identity.turn_id
        audit = caller.entry("WITHDRAW_INPUT", conversation_id=conversation_id, turn_id=turn_id)
        try:
            written = await services.writer.request(
                turn, Withdraw(message_id=message_id), partial(caller.command, audit)
            )
        except (TurnTerminal, VersionConflict):
            continue
        return written.stored
    raise Contended("the conversation changed again and again; withdraw the message once more")
