"""Conversations: making, reading and listing them."""

from collections.abc import Sequence
from datetime import datetime

from app.ports import Conversation, ConversationSummary, StoredMessage
from app.services.deps import Caller, Services
from app.services.errors import ConversationNotFound, PayloadInvalid
from app.turn.ids import AgentId, ConversationId


async def put_conversation(
    services: Services,
    caller: Caller,
    conversation_id: ConversationId,
    *,
    agent_id: AgentId | None,
    title: str | None,
) -> tuple[ConversationSummary, bool]:
    """The conversation of that id, and whether it was made now.

    Raises:
        PayloadInvalid: the agent is unknown, or the conversation is another agent's.
        ConversationNotFound: the id is taken by somebody else's conversation.
    """
    agent = services.catalog.current(agent_id)
    if agent is None:
        raise PayloadInvalid(f"there is no agent {agent_id!r}")
    now = services.clock()
    wanted = Conversation(
        tenant_id=caller.principal.tenant_id,
        conversation_id=conversation_id,
        owner_id=caller.principal.actor_id,
        agent_id=agent.agent.agent_id,
        title=title or "",
        created_at=now,
        updated_at=now,
    )
    audit = caller.entry("PUT_CONVERSATION", conversation_id=conversation_id)
    fresh = ConversationSummary(conversation=wanted, active=None, last=None)
    made = await services.conversations.put(wanted, audit, await caller.kept(fresh))
    if made:
        return fresh, True
    found = await get_conversation(services, caller, conversation_id)
    if agent_id is not None and found.conversation.agent_id != agent_id:
        raise PayloadInvalid(
            f"conversation {conversation_id!r} is agent {found.conversation.agent_id!r}'s"
        )
    await services.audit.record(audit)
    return found, False


async def get_conversation(
    services: Services, caller: Caller, conversation_id: ConversationId
) -> ConversationSummary:
    """Raises `ConversationNotFound` for one that is not there or not the caller's to see."""
    found = await services.conversations.summary(caller.principal.scope, conversation_id)
    if found is None:
        raise ConversationNotFound(f"there is no conversation {conversation_id!r}")
    return found


async def list_conversations(
    services: Services,
    caller: Caller,
    *,
    before: tuple[datetime, ConversationId] | None,
    limit: int,
) -> Sequence[ConversationSummary]:
    return await services.conversations.page(caller.principal.scope, before=before, limit=limit)


async def list_messages(
    services: Services,
    caller: Caller,
    conversation_id: ConversationId,
    *,
    after: int,
    limit: int,
) -> Sequence[StoredMessage]:
    """Raises `ConversationNotFound` as `get_conversation` does."""
    await get_conversation(services, caller, conversation_id)
    return await services.conversations.messages(
        caller.principal.scope, conversation_id, after=after, limit=limit
    )
