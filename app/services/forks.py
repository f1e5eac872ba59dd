"""Forks: a new turn, in a new conversation, from the history of any turn (C14).

The turn itself stays as it is, be it failed, cancelled, waiting or at work. The history is judged
like one from elsewhere: open calls stay with the turn that has asked for them, so in the fork they
are reported and never run, nobody is asked about them, and nothing outside is called off (T113).
"""

from app.ports import Conversation
from app.services.commands import Commanded
from app.services.deps import Caller, Services
from app.services.errors import NothingToResume
from app.services.found import get_turn
from app.services.imports import as_brought, title_in
from app.services.opening import open_behind
from app.turn.forking import forked
from app.turn.ids import ConversationId, TurnId
from app.turn.resume_point import NotResumable


async def fork(
    services: Services, caller: Caller, turn_id: TurnId, *, model: str | None
) -> Commanded:
    """The new turn, which goes on where the history of the other stands now.

    Raises:
        TurnNotFound: as its name says.
        NothingToResume: the history asks for no next step, or for none we can take.
        PayloadInvalid: the turn's agent has no version here any more.
        KeyTaken: a request with the same key took effect first.
    """
    source = (await get_turn(services, caller, turn_id)).turn
    history = as_brought(services, await services.histories.up_to(source))
    source = (await get_turn(services, caller, turn_id)).turn
    history, point = forked(source, history)
    if isinstance(point, NotResumable):
        raise NothingToResume(point.reason, source)
    now = services.clock()
    conversation = Conversation(
        tenant_id=caller.principal.tenant_id,
        conversation_id=ConversationId(services.new_id("ses")),
        owner_id=caller.principal.actor_id,
        agent_id=source.identity.agent_id,
        title=title_in(history),
        created_at=now,
        updated_at=now,
    )
    commit = await open_behind(
        services,
        caller,
        conversation,
        point,
        first_position=len(history),
        resumes=turn_id,
        model=model,
        action="FORK",
        history=history,
    )
    return Commanded(stored=commit.stored, seen_version=0)
