"""What the runner and the services ask of the outside, as small protocols.

A port exists where there are two implementations (a model provider and the scripted one, a local
tool and one behind HTTP) or where the arrow must point inward (the store). None is wider than its
callers need.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from app.turn.agent import Agent, ToolSpec
from app.turn.events import Event
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.ids import (
    ActorId,
    AgentId,
    AgentVersion,
    CallId,
    ConversationId,
    MessageId,
    TenantId,
    TurnId,
)
from app.turn.state import Status, Turn
from app.turn.transcript import Message, Outcome
from app.turn.transcript import ModelAnswer as ModelAnswer  # noqa: PLC0414 - part of ModelEvent

Clock: TypeAlias = Callable[[], datetime]
"""Now, aware and in UTC, by the database's clock."""

NewId: TypeAlias = Callable[[str], str]
"""A fresh opaque id with the given prefix, such as `turn` or `fail`."""


# --- The model -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model: everything it needs and nothing that must be looked up."""

    model: str
    """The model's name without its provider."""
    instructions: str
    messages: Sequence[str]
    """The history, one JSON text per message, as stored (see docs/adr/0004)."""
    tools: Sequence[ToolSpec]
    attempt: int
    """Requests sent so far in this turn, this one included; from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    text: str


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | ModelAnswer | ModelFailure | RequestRefused
"""Deltas, then exactly one of the last three."""


class ModelClient(Protocol):
    """A provider of model answers."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer as it comes, ending with an answer, a failure or a refusal.

        A failing provider is news, not an exception: whatever the provider or the network does
        comes out as a `ModelFailure`. An exception out of this iterator is a fault of ours.
        Closing the iterator closes the connection. Safe to call concurrently.
        """
        ...


class ModelDirectory(Protocol):
    """Finds the client for a model's name at the moment of a call."""

    def resolve(self, model: str | None) -> "ResolvedModel | ModelFailure":
        """Endpoint and key as they are now; a missing key is a failure the turn can wait for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    client: ModelClient
    model: str
    provider: str


# --- Tools and agents ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of the call it serves."""

    turn_id: TurnId
    call_id: CallId
    idempotency_key: str
    """The same over all attempts of this call."""
    attempt: int
    """From 1; raised each time the tool is entered."""
    is_replay: bool
    """Whether an earlier attempt may already have had its effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool said; an error is said to the model, not raised."""

    outcome: Literal[Outcome.COMPLETED, Outcome.ERROR, Outcome.NOT_STARTED]
    content: str


class Tool(Protocol):
    """Something a model may ask for."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Validate the JSON arguments and do the work.

        Invalid arguments and exceptions of the tool come back as an `ERROR` output. Only
        cancellation passes through.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedAgent:
    """A version of an agent together with its tools, by name."""

    agent: Agent
    tools: Mapping[str, Tool]


class AgentCatalog(Protocol):
    """The agents this process can run."""

    def current(self, agent_id: AgentId | None) -> LoadedAgent | None:
        """The version new turns get; `None` as id means the default agent."""
        ...

    def load(self, agent_id: AgentId, version: AgentVersion) -> LoadedAgent | None:
        """Exactly that version or nothing; never another one."""
        ...

    def all(self) -> Sequence[Agent]:
        """The current version of every agent, the default one first."""
        ...

    def versions(self) -> Sequence[tuple[AgentId, AgentVersion]]:
        """Everything that can be loaded here."""
        ...


# --- The store -----------------------------------------------------------------------------------


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
class StoredTurn:
    turn: Turn
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTurn:
    turn: Turn
    claim: Claim


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A message id that is now taken, with a digest of what it stood for."""

    message_id: MessageId
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a person's accepted request leaves behind in the commit of its effect."""

    audit: AuditEntry
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic change of one turn."""

    before: Turn
    after: Turn
    events: Sequence[Event]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    tenant_id: TenantId
    conversation_id: ConversationId
    owner_id: ActorId
    agent_id: AgentId
    title: str
    created_at: datetime
    updated_at: datetime


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRow:
    """The events of one commit; `sequence` is the last one's, and the turn's version then."""

    sequence: int
    occurred_at: datetime
    events: Sequence[Event]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    position: int
    turn_id: TurnId
    created_at: datetime
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMessage:
    """A message as a model request carries it."""

    position: int
    body: str
    call_id: CallId | None
    """The call it answers, if it is a tool result."""


class VersionConflict(Exception):  # noqa: N818 - it says what happened, not that all is wrong
    """Somebody else changed the turn first: load it again and decide anew."""


class ClaimLost(Exception):  # noqa: N818
    """The worker's claim has passed to another; nothing was written, and it must stop."""


class StoreUnavailable(Exception):  # noqa: N818
    """The database does not answer. Nothing is known to be wrong with the request."""


class OutcomeUnknown(Exception):  # noqa: N818
    """The connection broke with the commit under way: it happened wholly or not at all."""


class TurnStore(Protocol):
    """Turns, their journal and their messages; one atomic statement per change."""

    async def create(self, conversation: Conversation, commit: Commit, command: Command) -> None:
        """Store a new turn, its conversation with it when that is new.

        Raises:
            VersionConflict: another turn became active, took the message id or the place first.
            OutcomeUnknown: read back before trying again.
        """
        ...

    async def append(
        self, commit: Commit, *, claim: Claim | None = None, command: Command | None = None
    ) -> Sequence[HistoryMessage]:
        """Move a turn from `commit.before` to `commit.after`; the messages that were added.

        A claim is given up in the same commit when the turn comes to rest.

        Raises:
            VersionConflict: the stored version is not `commit.before.version`.
            ClaimLost: `claim` is no longer the current one.
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
        """All messages of the turn's conversation in order, for a model request."""
        ...

    async def message_at(self, turn: Turn, position: int) -> Message | None:
        """One message of the turn's conversation."""
        ...

    async def final_texts(self, turns: Sequence[Turn]) -> Mapping[TurnId, str]:
        """The final answers of those turns that completed with one."""
        ...

    async def journal(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[JournalRow]:
        """Commits whose last sequence is greater than `after`, in order."""
        ...


class ConversationStore(Protocol):
    async def look_up(
        self, scope: Scope, conversation_id: ConversationId, message_id: MessageId | None
    ) -> Lookup: ...

    async def put(self, conversation: Conversation, audit: AuditEntry) -> bool:
        """Make the conversation if there is none of that id; whether it was made."""
        ...

    async def page(
        self, scope: Scope, *, before: tuple[datetime, ConversationId] | None, limit: int
    ) -> Sequence["ConversationSummary"]:
        """Latest activity first."""
        ...

    async def summary(
        self, scope: Scope, conversation_id: ConversationId
    ) -> "ConversationSummary | None": ...

    async def messages(
        self, scope: Scope, conversation_id: ConversationId, *, after: int, limit: int
    ) -> Sequence[StoredMessage]:
        """In order, without a gap: a result that came early waits for those before it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    conversation: Conversation
    active: Turn | None
    last: Turn | None
    """The newest turn, active or ended."""


class AuditLog(Protocol):
    async def record(self, entry: AuditEntry) -> None:
        """Keep a command that has no commit of its own: a refused one, or one without effect."""
        ...


class ClaimQueue(Protocol):
    """Which worker drives which turn, by the database's clock."""

    async def claim(
        self, worker: str, *, limit: int, versions: Sequence[tuple[AgentId, AgentVersion]]
    ) -> Sequence[ClaimedTurn]:
        """Take up to `limit` turns that are due, of these agents, and that nobody holds."""
        ...

    async def renew(self, worker: str, claims: Mapping[TurnId, int]) -> frozenset[TurnId]:
        """Prolong the claims, given by turn and epoch; the turns that are still held."""
        ...

    async def release(self, worker: str, claims: Mapping[TurnId, int]) -> None:
        """Give claims back; those that have passed on are left alone."""
        ...


class Wakeups(Protocol):
    """Hints that something changed. Losing one costs a poll interval, never a turn."""

    def announce(self, turn_id: TurnId, *, runnable: bool) -> None:
        """Wake this process at once and the others soon."""
        ...

    def watch(self, turn_id: TurnId) -> AbstractContextManager["Wakeup"]:
        """A wake-up that is set whenever the turn changes, while the context is open."""
        ...

    @property
    def runnable(self) -> "Wakeup":
        """Set whenever some turn may be claimable."""
        ...


class Wakeup(Protocol):
    """A level, not a queue: many changes before a wait are one."""

    def set(self) -> None: ...

    async def wait(self, timeout_seconds: float) -> bool:
        """Until set or timed out; clears it. Whether it was set."""
        ...
