"""Reverts: what came after a message is hidden, until that is undone or made final (W0-4, W0-19).

The message itself stays: a resume then answers it anew. Hidden messages are in no list, no request
and no resume point; the log and the turns that said them keep them. The next message of a user
makes the revert final. A resume goes on with what is visible and leaves the revert as it is, so
that it can still be undone.
"""

from dataclasses import replace

from app.ports import ConversationSummary
from app.services.conversations import get_conversation
from app.services.deps import Caller, Services
from app.services.errors import Contended, MessageNotFound
from app.turn.errors import ConversationBusy
from app.turn.ids import ConversationId, MessageId

_MOST_TRIES = 10
_NOTHING = (0, 0)


async def revert(
    services: Services, caller: Caller, conversation_id: ConversationId, message_id: MessageId
) -> ConversationSummary:
    """The conversation, with everything hidden that came after the message of a user.

    A revert before it is undone, so its point can be moved either way.

    Raises:
        ConversationNotFound: there is none, or none that the caller may see.
        MessageNotFound: no user has said it here, or it is hidden for good.
        ConversationBusy: a turn has not ended.
        Contended: it lost every race.
    """
    for _ in range(_MOST_TRIES):
        found = await _at_rest(services, caller, conversation_id)
        places = await services.histories.behind(found.conversation, message_id)
        if places is None:
            raise MessageNotFound(f"there is no message {message_id!r} of a user to go back to")
        first, free = places
        to = message_id if first < free else None
        hidden = await _hidden(services, caller, found, places, to=to, action="REVERT")
        if hidden is not None:
            return hidden
    raise Contended("the conversation changed again and again; revert it once more")


async def unrevert(
    services: Services, caller: Caller, conversation_id: ConversationId
) -> ConversationSummary:
    """The conversation, with what a revert has hidden back, unless that is final.

    Raises:
        ConversationNotFound, ConversationBusy, Contended: as for a revert.
    """
    for _ in range(_MOST_TRIES):
        found = await _at_rest(services, caller, conversation_id)
        shown = await _hidden(services, caller, found, _NOTHING, to=None, action="UNREVERT")
        if shown is not None:
            return shown
    raise Contended("the conversation changed again and again; undo the revert once more")


async def _at_rest(
    services: Services, caller: Caller, conversation_id: ConversationId
) -> ConversationSummary:
    found = await get_conversation(services, caller, conversation_id)
    turn = found.active
    if turn is not None:
        detail = f"turn {turn.identity.turn_id!r} of this conversation is {turn.status}"
        raise ConversationBusy(turn, f"{detail}; its history changes when it has ended")
    return found


async def _hidden(
    services: Services,
    caller: Caller,
    found: ConversationSummary,
    places: tuple[int, int],
    *,
    to: MessageId | None,
    action: str,
) -> ConversationSummary | None:
    """The conversation with exactly these places reverted; `None`: it has changed meanwhile."""
    seen, now = found.conversation, services.clock()
    after = replace(found, conversation=replace(seen, reverted_to=to, updated_at=now))
    audit = caller.entry(action, conversation_id=seen.conversation_id)
    kept = await caller.kept(after)
    is_done = await services.histories.hide(seen, places, to=to, at=now, audit=audit, kept=kept)
    return after if is_done else None
