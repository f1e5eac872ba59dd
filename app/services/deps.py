"""What the use cases stand on, built once per process."""

from dataclasses import dataclass

from app.ports import (
    AgentCatalog,
    AuditEntry,
    AuditLog,
    Clock,
    ConversationStore,
    NewId,
    TurnStore,
    Wakeups,
)
from app.runner.commit import TurnWriter
from app.runner.live_text import LiveText
from app.services.principal import Principal
from app.turn.ids import ConversationId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    turns: TurnStore
    conversations: ConversationStore
    audit: AuditLog
    writer: TurnWriter
    catalog: AgentCatalog
    wakeups: Wakeups
    live_text: LiveText
    clock: Clock
    new_id: NewId


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and in which request."""

    principal: Principal
    request_id: str

    def entry(
        self,
        action: str,
        *,
        conversation_id: ConversationId | None = None,
        turn_id: TurnId | None = None,
        failure_id: str | None = None,
    ) -> AuditEntry:
        """The audit row of an accepted command."""
        return AuditEntry(
            tenant_id=self.principal.tenant_id,
            actor_id=self.principal.actor_id,
            action=action,
            request_id=self.request_id,
            outcome="accepted",
            conversation_id=conversation_id,
            turn_id=turn_id,
            failure_id=failure_id,
        )
