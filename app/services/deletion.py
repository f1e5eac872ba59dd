"""Deleting a conversation with everything that is kept of it.

Its turn is ended first, in the ordinary way, so that whoever follows it or works for it outside is
told. Then all rows go at once. What stays is the audit, which holds ids and no content.
"""

from contextlib import suppress
from functools import partial

from app.ports import VersionConflict
from app.runner.commit import VersionMoved
from app.services.deps import Caller, Services
from app.services.errors import Contended, ConversationNotFound
from app.turn.decide import decide_request
from app.turn.errors import ConversationBusy
from app.turn.evolve import advance
from app.turn.ids import ConversationId
from app.turn.inputs import Cancel, Request, Withdraw
from app.turn.state import Turn

_MOST_TRIES = 20


async def delete_conversation(
    services: Services, caller: Caller, conversation_id: ConversationId
) -> None:
    """The conversation is gone, as if it had never been.

    Raises:
        ConversationNotFound: there is none, or none that the caller may see.
        ConversationBusy: its turn is at work and does not end at once.
        Contended: it lost every race.
    """
    for _ in range(_MOST_TRIES):
        found = await services.conversations.look_up(caller.principal.scope, conversation_id, None)
        if found.conversation is None:
            raise ConversationNotFound(f"there is no conversation {conversation_id!r}")
        if found.active is not None:
            await _end(services, caller, found.active.turn)
            continue
        audit = caller.entry("DELETE_CONVERSATION", conversation_id=conversation_id)
        if await services.conversations.delete(conversation_id, audit):
            return
    raise Contended("the conversation changed again and again; delete it once more")


async def _end(services: Services, caller: Caller, turn: Turn) -> None:
    """Cancel the turn; what is in its queue goes first, or it would open the next one."""
    after = advance(turn, decide_request(turn, Cancel(), at=services.clock()))
    if not after.is_terminal:
        detail = (
            f"turn {turn.identity.turn_id!r} of this conversation is {turn.status}; "
            "cancel it, and delete the conversation when it has ended"
        )
        raise ConversationBusy(turn, detail)
    with suppress(VersionMoved, VersionConflict):  # what happened meanwhile is looked at anew
        for queued in turn.queue:
            withdrawn = Withdraw(message_id=queued.message.message_id)
            turn = await _told(services, caller, turn, withdrawn, "WITHDRAW_INPUT")
        await _told(services, caller, turn, Cancel(), "CANCEL")


async def _told(
    services: Services, caller: Caller, turn: Turn, given: Request, action: str
) -> Turn:
    identity = turn.identity
    audit = caller.entry(action, conversation_id=identity.conversation_id, turn_id=identity.turn_id)
    written = await services.writer.request(
        turn, given, partial(caller.command, audit), expected_version=turn.version
    )
    return written.turn
