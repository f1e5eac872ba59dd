"""The store: one atomic statement per change, and what can go wrong with it."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Protocol

from app.ports.records import (
    AuditEntry,
    Claim,
    ClaimedTurn,
    Command,
    Commit,
    Committed,
    Conversation,
    ConversationSummary,
    FoundReply,
    HistoryMessage,
    InterruptedCall,
    JournalRow,
    KeptReply,
    Lookup,
    Scope,
    Spending,
    StoredMessage,
    StoredTurn,
)
from app.turn.failures import FailureRecord
from app.turn.ids import (
    ActorId,
    AgentId,
    AgentVersion,
    ConversationId,
    MessageId,
    TenantId,
    TurnId,
)
from app.turn.state import Turn
from app.turn.status import Status
from app.turn.transcript import Message


class VersionConflict(Exception):  # noqa: N818 - it says what happened, not that all is wrong
    """Somebody else changed the turn first: load it again and decide anew."""


class MessageTaken(VersionConflict):
    """The message id was taken meanwhile: look for the turn that has it."""


class ClaimLost(Exception):  # noqa: N818
    """The worker's claim has passed to another; nothing was written, and it must stop."""


class StoreUnavailable(Exception):  # noqa: N818
    """The database does not answer. Nothing is known to be wrong with the request."""


class TurnNotReadable(Exception):  # noqa: N818
    """A turn is stored in a form that this code does not know whole, so it must not change it."""


class KeyTaken(Exception):  # noqa: N818
    """Another request with the same Idempotency-Key took effect first; nothing was written."""


class OutcomeUnknown(Exception):  # noqa: N818
    """The connection broke with the commit under way: it happened wholly or not at all."""


class TurnStore(Protocol):
    """Turns, their journal and their messages; one atomic statement per change."""

    async def create(
        self, conversation: Conversation, commit: Commit, command: Command
    ) -> Committed:
        """Store a new turn, its conversation with it when that is new.

        Raises:
            VersionConflict: another turn became active, took the message id or the place first, or
                the conversation that it goes on with was deleted.
            KeyTaken: a request with the same key took effect first.
            OutcomeUnknown: read back before trying again.
        """
        ...

    async def append(
        self, commit: Commit, *, claim: Claim | None = None, command: Command | None = None
    ) -> Committed:
        """Move a turn from `commit.before` to `commit.after`.

        A claim is given up in the same commit when the turn comes to rest. With a successor, that
        turn is there as soon as the other has ended, and the message ids it holds are its own.

        Raises:
            VersionConflict: the stored version is not `commit.before.version`.
            MessageTaken: the message id of `command` is taken.
            ClaimLost: `claim` is no longer the current one.
            KeyTaken: a request with the same key took effect first.
            OutcomeUnknown: read back before trying again.
        """
        ...

    async def load(self, turn_id: TurnId) -> Turn | None:
        """For workers, who act on a turn they hold; people's requests use `find`."""
        ...

    async def find(self, scope: Scope, turn_id: TurnId) -> StoredTurn | None:
        """The turn, if the scope may see it."""
        ...

    async def page(
        self,
        scope: Scope,
        *,
        statuses: Sequence[Status],
        conversation_id: ConversationId | None,
        before: tuple[datetime, TurnId] | None,
        limit: int,
    ) -> Sequence[StoredTurn]:
        """Newest first; `statuses` empty means any."""
        ...

    async def history(self, turn: Turn) -> Sequence[HistoryMessage]:
        """The messages of the turn's conversation in order, for a model request.

        Without what is hidden, and without what is damaged of a history that was brought along.
        """
        ...

    async def message_at(self, turn: Turn, position: int) -> Message | None:
        """One message of the turn's conversation."""
        ...

    async def final_texts(self, turns: Sequence[Turn]) -> Mapping[TurnId, str]:
        """The final answers of those turns that completed with one."""
        ...

    async def failures(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[FailureRecord]:
        """The turn's failure history behind the model attempt `after`, oldest first."""
        ...

    async def interruptions(
        self, turn_id: TurnId, *, after: int, limit: int
    ) -> Sequence[InterruptedCall]:
        """The turn's interrupted calls behind the position `after`, in declared order."""
        ...

    async def journal(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[JournalRow]:
        """Commits whose last sequence is greater than `after`, in order."""
        ...


class ConversationStore(Protocol):
    async def look_up(
        self, scope: Scope, conversation_id: ConversationId, message_id: MessageId | None
    ) -> Lookup:
        """What decides on a message to the conversation, in one look; never `None`."""
        ...

    async def put(
        self,
        conversation: Conversation,
        audit: AuditEntry,
        kept: KeptReply | None = None,
        history: Sequence[Message] = (),
    ) -> bool:
        """Make the conversation if there is none of that id; whether it was made.

        `history` is what it brings along, from the first place on.

        Raises:
            KeyTaken: a request with the same key took effect first.
        """
        ...

    async def delete(self, conversation_id: ConversationId, audit: AuditEntry) -> bool:
        """Delete every row of the conversation of the entry's tenant, but those of the audit.

        Whether it is gone; not so while a turn of it has not ended, or when one began meanwhile.
        """
        ...

    async def page(
        self, scope: Scope, *, before: tuple[datetime, ConversationId] | None, limit: int
    ) -> Sequence["ConversationSummary"]:
        """Latest activity first."""
        ...

    async def summary(
        self, scope: Scope, conversation_id: ConversationId
    ) -> "ConversationSummary | None":
        """The conversation and its newest turn, if the scope may see it."""
        ...

    async def has_commanded(
        self,
        scope: Scope,
        conversation_id: ConversationId,
        actor_id: ActorId,
        actions: Sequence[str],
    ) -> bool:
        """Whether one of these commands of the actor's took effect in one of its turns."""
        ...

    async def messages(
        self, scope: Scope, conversation_id: ConversationId, *, after: int, limit: int
    ) -> Sequence[StoredMessage]:
        """In order, without what is hidden: a result that came early waits for those before it."""
        ...


class UsageStore(Protocol):
    """What model calls have cost."""

    async def by_agent(
        self, scope: Scope, *, since: datetime, until: datetime
    ) -> Mapping[AgentId, Spending]:
        """Over the attempts that ended from `since` to before `until`, in the order of the ids."""
        ...


class AuditLog(Protocol):
    async def record(self, entry: AuditEntry, kept: KeptReply | None = None) -> None:
        """Keep a command that has no commit of its own: a refused one, or one without effect.

        Raises:
            KeyTaken: as its name says.
        """
        ...


class ReplyStore(Protocol):
    """Replies to requests with an Idempotency-Key, each actor's for themselves, for 30 days."""

    async def find(self, principal: tuple[TenantId, ActorId], key: str) -> FoundReply | None:
        """The reply under a key of this actor's; `None`: the key is unused."""
        ...

    async def settle(self, principal: tuple[TenantId, ActorId], kept: KeptReply) -> None:
        """The first request has been answered with `kept.reply` in the end."""
        ...


class Renewals(Protocol):
    """What a heartbeat needs of the claims."""

    async def renew(self, worker: str, claims: Mapping[TurnId, int]) -> frozenset[TurnId]:
        """Prolong the claims, given by turn and epoch; the turns that are still held."""
        ...


class OrphanClaims(Protocol):
    """Taking a turn whose worker is gone, for as long as it takes to write to it (T10a)."""

    async def take(self, worker: str, turn_id: TurnId) -> Claim | None:
        """Claim the turn if it is RUNNING and its claim has run out without being given up.

        From then on nobody else can, worker or not; `None`: it is not so.
        """
        ...

    async def lapse(self, turn_id: TurnId, claim: Claim) -> None:
        """Let the claim run out now: the turn is as orphaned as before."""
        ...

    async def release(self, worker: str, claims: Mapping[TurnId, int]) -> None:
        """Give claims back; those that have passed on are left alone."""
        ...


class ClaimQueue(Renewals, Protocol):
    """Which worker drives which turn, by the database's clock.

    Tenants take turns: one with many turns does not keep another's waiting beyond the next place.
    A turn of which workers have died is left alone for a while, longer each time.
    """

    async def claim(
        self,
        worker: str,
        *,
        limit: int,
        versions: Sequence[tuple[AgentId, AgentVersion]],
        named: AbstractSet[TurnId] | None = None,
    ) -> Sequence[ClaimedTurn]:
        """Take up to `limit` turns that are due and that nobody holds.

        They are of these agents, or are to be cancelled or paused, for which no agent is needed.
        Where turns are `named` no others are looked at.
        """
        ...

    async def release(self, worker: str, claims: Mapping[TurnId, int]) -> None:
        """Give claims back; those that have passed on are left alone."""
        ...

    async def release_strays(
        self, worker: str, turn_ids: AbstractSet[TurnId]
    ) -> AbstractSet[TurnId]:
        """Give back whatever claims of these turns are the worker's; which they were."""
        ...
