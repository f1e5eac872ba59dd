"""What the store keeps and hands out, as values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.turn.effects import closed_by
from app.turn.events import Event
from app.turn.ids import (
    ActorId,
    AgentId,
    AttemptId,
    CallId,
    ConversationId,
    MessageId,
    TenantId,
    TurnId,
)
from app.turn.state import Turn
from app.turn.status import SuspensionType
from app.turn.transcript import InterruptionReason, Message, Outcome, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose rows may be seen. There is no scope that means every tenant."""

    tenant_id: TenantId
    owner_id: ActorId | None
    """Only this owner's conversations; `None` means all of the tenant's, for operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A worker's temporary right to drive a turn; the epoch fences it."""

    worker: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The claim that a commit is to make: whose, and for how many seconds."""

    worker: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    turn: Turn
    updated_at: datetime
    number: int = 0
    """Its place among the turns of its conversation, from 1; 0 where that was not read."""
    pruned_through: int = 0
    """Events up to this one are kept no more; 0 or less: all are there, as of a turn at work."""
    closed: tuple[ToolResult, ...] = ()
    """Of calls that were closed without a result of their tool by the change that has just left
    the turn so; nothing where it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who asked for what, and what came of it. No message bodies."""

    tenant_id: TenantId
    actor_id: ActorId
    action: str
    request_id: str
    outcome: Literal["accepted", "refused"]
    code: str | None = None
    """The problem code of a refusal."""
    conversation_id: ConversationId | None = None
    turn_id: TurnId | None = None
    failure_id: str | None = None
    """As the caller gave it, current or not."""
    call_id: str | None = None
    """As the caller gave it, current or not."""
    changes: str | None = None
    """What the command has changed of how the turn goes on, JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A message id that is now taken, with a digest of what it stood for."""

    message_id: MessageId
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReply:
    """What a request with an Idempotency-Key was answered, to be said again to its repetitions."""

    key: str
    digest: str
    """Of what was asked: method, address and body."""
    reply: str
    """Status, headers and body, as JSON."""
    answering_seconds: float = 0
    """For how long the first request may still be on its way to another answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReply:
    """A kept reply, as a repetition finds it."""

    digest: str
    reply: str
    busy_seconds: float
    """How long the first request may still be answering; 0 once it has been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a person's accepted request leaves behind in the commit of its effect."""

    audit: AuditEntry
    receipt: Receipt | None = None
    kept: KeptReply | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A turn that comes into being, with its first events."""

    turn: Turn
    events: Sequence[Event]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic change of one turn, and of the one it opens by ending."""

    before: Turn
    after: Turn
    events: Sequence[Event]
    at: datetime
    """When it was decided; the turn says it as its last change."""
    successor: Opened | None = None
    """What the queue of an ended turn opens: there is no moment without it (case 93)."""
    brought: Sequence[Message] = ()
    """What the new conversation of a new turn brings along; the turn's places are behind it."""
    lease: Lease | None = None
    """The claim that comes with the change, of a turn that comes to be at work by it."""

    @property
    def stored(self) -> StoredTurn:
        """The turn as it is once the commit has happened."""
        return StoredTurn(turn=self.after, updated_at=self.at, closed=closed_by(self.events))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    tenant_id: TenantId
    conversation_id: ConversationId
    owner_id: ActorId
    agent_id: AgentId
    title: str
    created_at: datetime
    updated_at: datetime
    reverted_to: MessageId | None = None
    """The message behind which everything is hidden, until that is undone or made final."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Everything that decides what a message to a conversation means, read at one moment."""

    conversation: Conversation | None
    """`None`: there is none; one that the scope may not see counts as foreign."""
    foreign: bool
    """The id is taken by a conversation outside the scope."""
    received: tuple[TurnId, str] | None
    """The turn that took this message id, and the digest it stood for."""
    active: StoredTurn | None
    next_position: int
    ends_imported: bool = False
    """The last message was brought along: calls at its end may have no results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a conversation stands, for whoever wants to go on with it without a new message."""

    conversation: Conversation
    active: StoredTurn | None
    is_lost: bool
    """The active turn's worker is gone: its claim has run out and was not given up."""
    last: StoredTurn | None
    """The ended turn that the visible end of the history belongs to."""
    end: Sequence[Message]
    """The end of the visible history: what says where it can be resumed, and all behind it."""
    next_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRow:
    """The events of one commit; `sequence` is the last one's, and the turn's version then."""

    sequence: int
    occurred_at: datetime
    events: Sequence[Event]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptedCall:
    """A call that was answered without a result of its tool."""

    position: int
    """Of the result that took its place in the transcript."""
    call_id: CallId
    tool_name: str
    outcome: Outcome
    reason: InterruptionReason | None
    suspension_type: SuspensionType | None
    """What the turn waited for just then; `None` when it was at work or paused."""
    source_message_id: MessageId | None
    """The message that the call was given up for."""
    interrupted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A sum of tokens over model calls."""

    known: int | None
    """Over the attempts whose figure is known; `None` when there is no such attempt."""
    attempts_without: int
    """How many attempts the sum leaves out, because nobody said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What model calls have cost over some time."""

    attempts: int
    """Requests that have ended, well or not."""
    successes: int
    input_tokens: Figure
    cached_input_tokens: Figure
    output_tokens: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    position: int
    turn_id: TurnId | None
    """`None`: it was brought along from elsewhere."""
    created_at: datetime
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMessage:
    """A message as a model request carries it."""

    position: int
    role: str
    body: str
    """Empty where a summary stands for it."""
    call_id: CallId | None
    """The call it answers, if it is a tool result."""
    turn_id: TurnId | None
    """`None`: it was brought along, or is a summary."""
    is_summed_up: bool = False
    """A summary stands in requests for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTurn:
    turn: Turn
    claim: Claim
    is_taken_over: bool = False
    """Whether the claim before ran out without being given up: that worker is gone."""
    deaths: int = 0
    """How many workers have gone so since something new was stored of the turn."""
    begun: AttemptId | None = None
    """The attempt that the claiming commit has begun, for this worker to make."""
    history: Sequence[HistoryMessage] | None = None
    """Everything said in the conversation, where the claiming commit has brought it; else it has
    to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What a commit has left behind."""

    messages: Sequence[HistoryMessage]
    """Those it has added."""
    claim: Claim | None = None
    """The one it has made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    conversation: Conversation
    active: Turn | None
    last: Turn | None
    """The newest turn, active or ended."""
