"""What turns wait for, across turns: for people who look for their work, and for executors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from app.ports.records import AuditEntry, KeptReply, Scope, StoredTurn
from app.turn.ids import ActorId, AgentId, CallId, ConversationId, TurnId
from app.turn.open_calls import OpenCall
from app.turn.state import Turn
from app.turn.states import (
    Paused,
    RetryScheduled,
    ToolRetryScheduled,
    WaitingForModel,
    WaitingForUser,
)
from app.turn.status import SuspensionType
from app.turn.waits import WAITING, ApprovalStage

WaitKind: TypeAlias = SuspensionType | Literal["PAUSED"]
ExternalStatus: TypeAlias = Literal["open", "completed", "failed", "cancelled"]
LateKind: TypeAlias = Literal["TOOL_RESULT", "TOOL_ERROR"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitedFor:
    """One thing that a turn waits for."""

    kind: WaitKind
    requested_at: datetime
    call: OpenCall | None = None
    """The call that somebody is to answer; `None`: the turn as a whole waits."""


def waited_for(turn: Turn) -> tuple[WaitedFor, ...]:
    """Everything that a turn waits for now: it as a whole, then its calls in declared order.

    Calls may wait for somebody while the turn is at work or paused (`open_waits: together`).
    """
    return (*_as_a_whole(turn), *_for_calls(turn))


def _as_a_whole(turn: Turn) -> tuple[WaitedFor, ...]:
    match turn.state:
        case WaitingForModel(requested_at=since):
            return (WaitedFor(kind="MODEL", requested_at=since),)
        case RetryScheduled(requested_at=since) | ToolRetryScheduled(requested_at=since):
            return (WaitedFor(kind="RETRY", requested_at=since),)
        case WaitingForUser(requested_at=since):
            return (WaitedFor(kind="USER_INPUT", requested_at=since),)
        case Paused(requested_at=since):
            return (WaitedFor(kind="PAUSED", requested_at=since),)
        case _:
            return ()


def _for_calls(turn: Turn) -> tuple[WaitedFor, ...]:
    return tuple(
        WaitedFor(kind=WAITING[wait.kind][0], requested_at=wait.requested_at, call=call)
        for call in turn.open_calls
        if (wait := call.wait) is not None and wait.requested_at is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTurn:
    """A turn that waits for something, as a list shows it."""

    stored: StoredTurn
    waiting_since: datetime
    title: str
    """Its conversation's, like the owner."""
    owner_id: ActorId


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedApproval:
    """What a person has said to a request for an approval."""

    seq: int
    """Of the event that tells of it."""
    call_id: CallId
    tool_name: str
    stage: ApprovalStage
    fingerprint: str
    content: str
    """What was shown, exactly."""
    message: str | None
    is_approved: bool
    actor_id: ActorId
    reason: str | None
    requested_at: datetime
    decided_at: datetime


class WaitStore(Protocol):
    """Turns that wait, and what was said to them."""

    async def waiting(
        self,
        scope: Scope,
        *,
        with_calls_of_others: bool,
        after: tuple[datetime, TurnId] | None,
        limit: int,
    ) -> Sequence[WaitingTurn]:
        """Turns of the scope that wait, those that have waited longest first.

        With the calls of others, also turns of the tenant whose calls wait for an approval or for
        an outside tool, whoever owns them.
        """
        ...

    async def expired(self, *, at: datetime, limit: int) -> Sequence[Turn]:
        """Turns with a wait whose time is over at that moment and was not dealt with."""
        ...

    async def approvals(
        self, turn_id: TurnId, *, after: int, limit: int
    ) -> Sequence[DecidedApproval]:
        """What was approved and rejected in the turn behind the sequence `after`, in order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalCall:
    """A call that was handed to an outside tool."""

    turn_id: TurnId
    call_id: CallId
    conversation_id: ConversationId
    agent_id: AgentId
    tool_name: str
    arguments: str
    """A JSON object as text, exactly as stored."""
    max_result_bytes: int
    requested_at: datetime
    expires_at: datetime | None
    status: ExternalStatus
    claims: int
    """Times that an executor has taken it."""
    claimed_by: str | None
    claimed_until: datetime | None
    closed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalClaim:
    """What an executor is ready to do, and for how long nobody else is to begin it."""

    executor: str
    tools: Sequence[str]
    """Empty: any."""
    limit: int
    lease_seconds: int


KeepClaimed: TypeAlias = Callable[[Sequence[ExternalCall]], KeptReply | None]
"""The reply to store for what was taken, if the request has a key."""


class ExternalCallStore(Protocol):
    """Calls that outside tools are to do or have done."""

    async def page(
        self,
        scope: Scope,
        *,
        status: ExternalStatus | None,
        tools: Sequence[str],
        after: tuple[datetime, TurnId, CallId] | None,
        limit: int,
    ) -> Sequence[ExternalCall]:
        """Oldest first; without a status of all, without tools of any."""
        ...

    async def claim(
        self, scope: Scope, wanted: ExternalClaim, audit: AuditEntry, keep: KeepClaimed
    ) -> Sequence[ExternalCall]:
        """Take open calls that nobody holds and whose time is not over, oldest first.

        Each call taken leaves a copy of the audit entry with its ids. Two executors that ask at
        once never get the same call while the lease of the first lasts.

        Raises:
            KeyTaken: a request with the same key took effect first; nothing is taken then.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LateResult:
    """What somebody outside has said of a call that took no result any more."""

    call_id: CallId
    kind: LateKind
    code: str | None
    body: str
    """The result as the model would have read it, or the error's message."""
    is_cut: bool
    """Whether only its beginning is kept."""
    actor_id: ActorId


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLateResult:
    """A late result as it is kept."""

    seq: int
    """Among those of its turn, from 1."""
    late: LateResult
    received_at: datetime


class LateResultStore(Protocol):
    """Late results; no model ever reads them."""

    async def keep(self, turn: Turn, late: LateResult, *, is_open: bool) -> bool:
        """Keep it if the call is one of the turn's, and the turn has less than 1,000; whether so.

        A call that is not open is the turn's if it has an answer there.
        """
        ...

    async def page(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[KeptLateResult]:
        """Those of the turn behind the number `after`, in the order they came."""
        ...
