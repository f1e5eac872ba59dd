"""What the use cases stand on, built once per process."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from app.ports import (
    AgentCatalog,
    AuditEntry,
    AuditLog,
    Clock,
    Command,
    Commit,
    ConversationStore,
    ConversationSummary,
    ExternalCallStore,
    FeedStore,
    HistoryStore,
    KeptReply,
    LateResultStore,
    NewId,
    OrphanClaims,
    Receipt,
    StoredTurn,
    TurnStore,
    UsageStore,
    WaitStore,
    Wakeups,
)
from app.runner.commit import TurnWriter
from app.runner.live_text import LiveText
from app.runner.recent import RecentCommits
from app.services.journals import Journals
from app.services.principal import Principal
from app.services.top_up import TopUpLinks
from app.turn.ids import ConversationId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    turns: TurnStore
    conversations: ConversationStore
    histories: HistoryStore
    audit: AuditLog
    usage: UsageStore
    waits: WaitStore
    orphans: OrphanClaims
    external_calls: ExternalCallStore
    late_results: LateResultStore
    feeds: FeedStore
    journals: Journals
    writer: TurnWriter
    catalog: AgentCatalog
    wakeups: Wakeups
    live_text: LiveText
    recent: RecentCommits
    clock: Clock
    new_id: NewId
    top_up: TopUpLinks = field(default_factory=TopUpLinks)


Keep: TypeAlias = Callable[[StoredTurn | ConversationSummary, int], Awaitable[KeptReply]]
"""What the request will be answered, from what it came to and the turn's version before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and in which request."""

    principal: Principal
    request_id: str
    is_still_known: Callable[[], bool] = lambda: True
    """Whether the same credentials would make the same caller of them now."""
    keep: Keep | None = None
    """For a request with an Idempotency-Key: its reply is stored with its effect."""

    async def command(
        self, audit: AuditEntry, commit: Commit, receipt: Receipt | None = None
    ) -> Command:
        """What the accepted request leaves behind in `commit`."""
        kept = await self.kept(commit.stored, commit.before.version)
        return Command(audit=audit, receipt=receipt, kept=kept)

    async def opening(
        self, audit: AuditEntry, commit: Commit, receipt: Receipt | None = None
    ) -> Command:
        """The same, of a request that opens a turn."""
        return Command(audit=audit, receipt=receipt, kept=await self.kept(commit.stored))

    async def kept(
        self, what: StoredTurn | ConversationSummary, seen_version: int = 0
    ) -> KeptReply | None:
        """The reply to store, if the request has a key."""
        return None if self.keep is None else await self.keep(what, seen_version)

    def entry(
        self,
        action: str,
        *,
        conversation_id: ConversationId | None = None,
        turn_id: TurnId | None = None,
        failure_id: str | None = None,
        call_id: str | None = None,
        changes: str | None = None,
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
            call_id=call_id,
            changes=changes,
        )
