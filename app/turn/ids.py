"""Names for the strings that travel between the parts; an id is opaque to all of them."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import NewType

TenantId = NewType("TenantId", str)
ActorId = NewType("ActorId", str)
ConversationId = NewType("ConversationId", str)
TurnId = NewType("TurnId", str)
MessageId = NewType("MessageId", str)
CallId = NewType("CallId", str)
"""A tool call's id; unique within its turn only."""
AttemptId = NewType("AttemptId", str)
"""One begun step: a model request, or a round of tool calls."""
FailureId = NewType("FailureId", str)
AgentId = NewType("AgentId", str)
AgentVersion = NewType("AgentVersion", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What never changes about a turn."""

    turn_id: TurnId
    tenant_id: TenantId
    conversation_id: ConversationId
    agent_id: AgentId
    agent_version: AgentVersion


ConversationKey = NewType("ConversationKey", str)
"""A conversation in one short word, whatever its tenant's and its own id are."""


def conversation_key(tenant_id: TenantId, conversation_id: ConversationId) -> ConversationKey:
    """The same in every process, and of one length."""
    named = f"{tenant_id}\0{conversation_id}".encode()
    return ConversationKey(f"conversation_{blake2b(named, digest_size=16).hexdigest()}")


def idempotency_key(turn_id: TurnId, call_id: CallId) -> str:
    """The key offered to a tool: the same over all attempts of one call (seed rule AF-76)."""
    return f"{turn_id}:{call_id}"
