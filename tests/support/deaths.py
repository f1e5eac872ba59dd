"""Infrastructure that fails at a chosen commit: the process dies, or the answer to COMMIT is lost.

A death is a `BaseException`, so no handler of the service takes it for news. From then on the dead
process writes nothing: whatever of it still runs meets its death at the store as well.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from typing import Any, TypeVar

from app.agents import Agent
from app.entrypoints import wiring
from app.ports import (
    Claim,
    ClaimedTurn,
    ClaimQueue,
    Clock,
    Command,
    Commit,
    Conversation,
    HistoryMessage,
    InterruptedCall,
    JournalRow,
    OutcomeUnknown,
    Scope,
    StoredTurn,
    TurnStore,
)
from app.services.deps import Services
from app.settings import Settings
from app.turn.failures import FailureRecord
from app.turn.ids import AgentId, AgentVersion, ConversationId, TurnId
from app.turn.state import Turn
from app.turn.status import Status
from app.turn.transcript import Message
from tests.support.postgres import query

Result = TypeVar("Result")


class Death(BaseException):
    """The process ends here."""


class Fault(Enum):
    """What happens at the chosen commit."""

    DEATH_BEFORE_COMMIT = auto()
    DEATH_AFTER_COMMIT = auto()
    DEATH_AFTER_CLAIM = auto()
    ANSWER_LOST = auto()
    """The commit happened, and nobody was told."""
    CONNECTION_LOST = auto()
    """The commit did not happen, and nobody was told."""


@dataclass(slots=True)
class Fate:
    """A fault at chosen commits (or claims) of all the lives that share it."""

    fault: Fault
    at: frozenset[int]
    """Counted from 1."""
    commits: int = 0
    claims: int = 0
    struck: set[int] = field(default_factory=set[int])
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def is_due(self, count: int, *faults: Fault) -> bool:
        """Whether one of `faults` strikes at this commit or claim; it strikes once."""
        if self.fault not in faults or count not in self.at - self.struck:
            return False
        self.struck.add(count)
        return True

    def die(self) -> None:
        self.died.set()
        raise Death

    def require_alive(self) -> None:
        if self.died.is_set():
            raise Death


@dataclass(frozen=True, slots=True)
class MortalTurns:
    """A store of turns whose commits are subject to fate."""

    turns: TurnStore
    fate: Fate

    async def create(self, conversation: Conversation, commit: Commit, command: Command) -> None:
        await self._fated(lambda: self.turns.create(conversation, commit, command))

    async def append(
        self, commit: Commit, *, claim: Claim | None = None, command: Command | None = None
    ) -> Sequence[HistoryMessage]:
        return await self._fated(lambda: self.turns.append(commit, claim=claim, command=command))

    async def _fated(self, write: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        self.fate.require_alive()
        self.fate.commits += 1
        this = self.fate.commits  # others may be under way before it has ended
        if self.fate.is_due(this, Fault.DEATH_BEFORE_COMMIT):
            self.fate.die()
        if self.fate.is_due(this, Fault.CONNECTION_LOST):
            raise OutcomeUnknown
        written = await write()
        if self.fate.is_due(this, Fault.DEATH_AFTER_COMMIT):
            self.fate.die()
        if self.fate.is_due(this, Fault.ANSWER_LOST):
            raise OutcomeUnknown
        return written

    async def load(self, turn_id: TurnId) -> Turn | None:
        return await self.turns.load(turn_id)

    async def find(self, scope: Scope, turn_id: TurnId) -> StoredTurn | None:
        return await self.turns.find(scope, turn_id)

    async def page(
        self,
        scope: Scope,
        *,
        statuses: Sequence[Status],
        conversation_id: ConversationId | None,
        before: tuple[datetime, TurnId] | None,
        limit: int,
    ) -> Sequence[StoredTurn]:
        return await self.turns.page(
            scope, statuses=statuses, conversation_id=conversation_id, before=before, limit=limit
        )

    async def history(self, turn: Turn) -> Sequence[HistoryMessage]:
        return await self.turns.history(turn)

    async def message_at(self, turn: Turn, position: int) -> Message | None:
        return await self.turns.message_at(turn, position)

    async def final_texts(self, turns: Sequence[Turn]) -> Mapping[TurnId, str]:
        return await self.turns.final_texts(turns)

    async def failures(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[FailureRecord]:
        return await self.turns.failures(turn_id, after=after, limit=limit)

    async def interruptions(
        self, turn_id: TurnId, *, after: int, limit: int
    ) -> Sequence[InterruptedCall]:
        return await self.turns.interruptions(turn_id, after=after, limit=limit)

    async def journal(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[JournalRow]:
        return await self.turns.journal(turn_id, after=after, limit=limit)


@dataclass(frozen=True, slots=True)
class MortalClaims:
    """Claims of a process that may die with one in its hand."""

    claims: ClaimQueue
    fate: Fate

    async def claim(
        self, worker: str, *, limit: int, versions: Sequence[tuple[AgentId, AgentVersion]]
    ) -> Sequence[ClaimedTurn]:
        self.fate.require_alive()
        claimed = await self.claims.claim(worker, limit=limit, versions=versions)
        self.fate.claims += bool(claimed)
        if claimed and self.fate.is_due(self.fate.claims, Fault.DEATH_AFTER_CLAIM):
            self.fate.die()
        return claimed

    async def renew(self, worker: str, claims: Mapping[TurnId, int]) -> frozenset[TurnId]:
        self.fate.require_alive()
        return await self.claims.renew(worker, claims)

    async def release(self, worker: str, claims: Mapping[TurnId, int]) -> None:
        self.fate.require_alive()
        await self.claims.release(worker, claims)


@asynccontextmanager
async def life(
    settings: Settings,
    dsn: str,
    agents: Sequence[Agent],
    fate: Fate,
    clock: Clock | None = None,
) -> AsyncGenerator[Services]:
    """The services of a process with a worker; leaving ends it without any farewell.

    `clock` instead of its own, where one is given.
    """
    fate.died.clear()
    async with wiring.build(settings, dsn, stopping=asyncio.Event(), agents=agents) as runtime:
        turns = MortalTurns(runtime.services.turns, fate)
        clock = clock or runtime.services.clock
        writer = replace(runtime.services.writer, store=turns, clock=clock)
        services = replace(runtime.services, turns=turns, writer=writer, clock=clock)
        driver = replace(runtime.worker.driver, store=turns, writer=writer)
        claims = MortalClaims(runtime.worker.claims, fate)
        worker = replace(runtime.worker, driver=driver, claims=claims)
        working = asyncio.create_task(worker.run(asyncio.Event()))
        try:
            yield services
        finally:
            working.cancel()
            with suppress(Death, asyncio.CancelledError):
                await working


async def lives(
    settings: Settings,
    dsn: str,
    agents: Sequence[Agent],
    fate: Fate,
    client: Callable[[Services], Coroutine[Any, Any, Result]],
    clock: Clock | None = None,
) -> Result:
    """What `client` comes to; after each death it begins anew, in a new process."""
    while True:
        async with life(settings, dsn, agents, fate, clock) as services:
            asking = asyncio.create_task(client(services))
            dying = asyncio.create_task(fate.died.wait())
            await asyncio.wait((asking, dying), return_when=asyncio.FIRST_COMPLETED)
            dying.cancel()
            if not fate.died.is_set():
                return asking.result()
            asking.cancel()
            with suppress(Death, asyncio.CancelledError):
                await asking
        await let_claims_run_out(dsn)


async def let_claims_run_out(dsn: str) -> None:
    """As if the lease of every claim had passed."""
    await query(
        dsn,
        "UPDATE turns SET claimed_until = clock_timestamp() WHERE claimed_until IS NOT NULL",
    )
