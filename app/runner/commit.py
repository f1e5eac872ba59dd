"""Decide, store, tell: the only way a turn changes.

A change that loses a race is decided anew on the turn as it then is: a request may be refused now,
a report may have become stale. A commit whose answer is lost is looked up in the journal before
anything else is done, since it happened wholly or not at all; while the database cannot be reached
that look-up is what is repeated.

Whoever ends a turn, a worker or a person, opens the next one in the same commit when messages are
in its queue: this is the one place for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

import structlog

from app.ports import (
    AgentCatalog,
    Claim,
    ClaimLost,
    Clock,
    Command,
    Commit,
    Committed,
    Conversation,
    HistoryMessage,
    MessageTaken,
    NewId,
    Opened,
    OutcomeUnknown,
    StoredTurn,
    StoreUnavailable,
    TurnStore,
    VersionConflict,
    Wakeups,
)
from app.runner.exact_agent import exact_agent
from app.runner.hand_over import Handing, HandOver, handed
from app.runner.recent import RecentCommits
from app.turn.agent import Agent
from app.turn.decide import decide, decide_request
from app.turn.effects import closed_by
from app.turn.events import Event, TurnStarted
from app.turn.evolve import advance, fold
from app.turn.ids import TurnId, conversation_key
from app.turn.inputs import Report, Request, TimePassed
from app.turn.start import succeed
from app.turn.state import Turn

_LOOK_AGAIN_SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0, 2.0)
_MOST_RACES = 50

CommandOf: TypeAlias = Callable[[Commit], Awaitable[Command]]
"""What a person's request leaves behind, told from the change it comes to."""
Listener: TypeAlias = Callable[[Commit], None]
"""Told of a change that is stored."""
_Decision: TypeAlias = Callable[[Turn, datetime], tuple[Event, ...]]

_log = structlog.get_logger(__name__)


class VersionMoved(Exception):  # noqa: N818 - it says what happened
    """The turn is not at the version that the caller has seen."""

    def __init__(self, turn: Turn, expected_version: int | None) -> None:
        super().__init__(f"the turn is at version {turn.version}, not {expected_version}")
        self.turn = turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a change came to."""

    turn: Turn
    events: Sequence[Event]
    """Empty when there was nothing new to say."""
    at: datetime
    """When it was decided."""
    messages: Sequence[HistoryMessage]
    raced: bool
    """Somebody else changed the turn meanwhile; what is remembered of it may be incomplete."""

    @property
    def stored(self) -> StoredTurn:
        """The turn as this change has left it."""
        return StoredTurn(turn=self.turn, updated_at=self.at, closed=closed_by(self.events))

    @property
    def seen_version(self) -> int:
        """The turn's version before the change: events behind it are what the change brought."""
        return self.turn.version - len(self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnWriter:
    """Writes turns through the store, on behalf of people and of workers."""

    store: TurnStore
    wakeups: Wakeups
    clock: Clock
    catalog: AgentCatalog
    """For the words of interrupted calls, and the version of the agent that a queue's turn gets."""
    new_id: NewId
    recent: RecentCommits
    """For readers in this process."""
    listeners: Sequence[Listener] = ()
    """Told of every change of this writer, each once, whatever races it took."""
    hand_over: HandOver | None = None
    """To the worker of this process, of turns that come to be at work by this writer."""

    async def open(self, conversation: Conversation, commit: Commit, command: CommandOf) -> Commit:
        """The commit by which the turn has come into being: with its begin, if it is driven here.

        Raises:
            VersionConflict: another turn became active, or took the message id or the place, first.
            KeyTaken: a request with the same key took effect first.
            OutcomeUnknown: the database went away, and the turn is not there as far as can be seen.
        """
        with handed(self.hand_over, commit, is_due=commit.after.is_at_work) as handing:
            commit = handing.commit
            kept = await command(commit)
            handing.may_be_stored = True
            try:
                done = await self.store.create(conversation, commit, kept)
            except OutcomeUnknown:
                if await self.store.load(commit.after.identity.turn_id) is None:
                    raise
            else:
                handing.done(done.claim, done.messages if _is_all(commit) else None)
        self.recent.opened(commit)
        self._tell(commit, is_progress=False)
        self._tell_of_conversation(commit)
        await handing.has_begun()
        return commit

    async def request(
        self,
        turn: Turn,
        given: Request,
        command_of: CommandOf,
        *,
        expected_version: int | None = None,
    ) -> Written:
        """Carry out what a person asks, if the turn is at `expected_version` where one is given.

        Raises:
            Rejected: the turn, as it is at the end of any race, does not admit it.
            VersionMoved: it is not at `expected_version`.
            VersionConflict: it lost every one of many races.
            KeyTaken: a request with the same Idempotency-Key took effect first.
            MessageTaken: the command's message id was taken meanwhile.
            OutcomeUnknown: the database went away and could not be asked what became of it.
        """
        return await self._requested(turn, given, None, command_of, expected_version)

    async def request_under(
        self,
        claim: Claim,
        turn: Turn,
        given: Request,
        command_of: CommandOf,
        *,
        expected_version: int | None = None,
    ) -> Written:
        """The same, of a turn whose worker is gone: nobody else has it as long as `claim` holds.

        Raises:
            As above; VersionConflict also when the claim was lost.
        """
        return await self._requested(turn, given, claim, command_of, expected_version)

    async def _requested(
        self,
        turn: Turn,
        given: Request,
        claim: Claim | None,
        command_of: CommandOf,
        expected_version: int | None,
    ) -> Written:
        def decision(now: Turn, at: datetime) -> tuple[Event, ...]:
            if expected_version not in (None, now.version):
                raise VersionMoved(now, expected_version)
            return decide_request(now, given, at=at, agent=self._agent_of(now))

        return await self._written(turn, decision, claim, command_of)

    async def time_passed(self, turn: Turn) -> Written:
        """Deal with the turn's waits whose time is over, on behalf of nobody (T91).

        It needs no claim: whoever is faster, a person or another process, has dealt with them.

        Raises:
            VersionConflict, OutcomeUnknown: as above.
        """

        def decision(now: Turn, at: datetime) -> tuple[Event, ...]:
            return decide_request(now, TimePassed(), at=at, agent=self._agent_of(now))

        return await self._written(turn, decision, None, None)

    def _agent_of(self, turn: Turn) -> Agent | None:
        """For its words alone: a request needs no agent."""
        loaded = exact_agent(self.catalog, turn.identity)
        return None if loaded is None else loaded.agent

    async def report(self, turn: Turn, given: Report, agent: Agent, claim: Claim) -> Written:
        """Store what a worker has seen or is about to do.

        Raises:
            ClaimLost: the turn is another worker's now; nothing was written.
            OutcomeUnknown: as above.
        """
        return await self._write(
            turn, lambda now, at: decide(now, given, at=at, agent=agent), claim, None
        )

    async def _written(
        self,
        turn: Turn,
        decision: _Decision,
        claim: Claim | None,
        command_of: CommandOf | None,
    ) -> Written:
        try:
            return await self._write(turn, decision, claim, command_of)
        except ClaimLost as gone:  # somebody else has it, or it is gone with its conversation
            raise VersionConflict(str(gone)) from gone

    async def _write(
        self,
        turn: Turn,
        decision: _Decision,
        claim: Claim | None,
        command_of: CommandOf | None,
    ) -> Written:
        raced = False
        pauses = iter(_LOOK_AGAIN_SECONDS)
        for _ in range(_MOST_RACES):
            at = self.clock()
            events = decision(turn, at)
            if not events:
                return Written(turn=turn, events=(), at=at, messages=(), raced=raced)
            commit = self._commit(turn, events, at)
            comes_to_work = claim is None and not turn.is_at_work and commit.after.is_at_work
            try:
                with handed(self.hand_over, commit, is_due=comes_to_work) as handing:
                    done = await self._append(handing, claim, command_of)
            except MessageTaken:
                raise  # no other version of the turn would change that
            except VersionConflict:
                turn, raced = await self._reload(turn), True
                continue
            except OutcomeUnknown as error:
                await _pause_or_give_up(pauses, error)
                turn, raced = await self._reload(turn), True
                continue
            commit = handing.commit
            self._stored(commit, is_progress=claim is not None)
            await handing.has_begun()
            return Written(
                turn=commit.after,
                events=commit.events,
                at=at,
                messages=() if done is None else done.messages,
                raced=raced or done is None,
            )
        message = f"turn {turn.identity.turn_id!r} changed {_MOST_RACES} times meanwhile"
        raise VersionConflict(message)

    async def _append(
        self, handing: Handing, claim: Claim | None, command_of: CommandOf | None
    ) -> Committed | None:
        """What the commit has left behind; `None` when its journal alone says that it happened.

        Raises:
            OutcomeUnknown: it has not happened, as far as can be seen.
            As `TurnStore.append` otherwise.
        """
        commit = handing.commit
        command = None if command_of is None else await command_of(commit)
        handing.may_be_stored = True
        try:
            done = await self.store.append(commit, claim=claim, command=command)
        except OutcomeUnknown as error:
            _log.warning("commit_outcome_unknown", turn_id=commit.after.identity.turn_id)
            if not await self._happened(commit, error):
                raise
            return None
        handing.done(done.claim)
        return done

    def _commit(self, turn: Turn, events: tuple[Event, ...], at: datetime) -> Commit:
        after = advance(turn, events)
        next_one = self._successor(after, at)
        return Commit(before=turn, after=after, events=events, at=at, successor=next_one)

    def _successor(self, turn: Turn, at: datetime) -> Opened | None:
        """The turn that an ended one's queue opens, by the version of the agent that is current.

        Where that agent is not here at all, somebody else runs it: it keeps its version.
        """
        if not (turn.is_terminal and turn.queue):
            return None
        current = self.catalog.current(turn.identity.agent_id)
        identity = replace(
            turn.identity,
            turn_id=TurnId(self.new_id("turn")),
            agent_version=current.agent.version if current else turn.identity.agent_version,
        )
        events = succeed(turn, identity, at=at)
        return Opened(turn=fold(events), events=events)

    def _stored(self, commit: Commit, *, is_progress: bool) -> None:
        """Tell everybody who goes by what is stored: the one place for it, once a commit."""
        self.recent.stored(commit)
        for listener in self.listeners:
            _tell(listener, commit)
        is_midway = commit.after.attempt_in_flight is not None
        self._tell(commit, is_progress=is_progress and is_midway)
        if commit.successor is not None:
            self.wakeups.announce(commit.successor.turn.identity.turn_id, runnable=True)
            self._tell_of_conversation(commit)

    def _tell(self, commit: Commit, *, is_progress: bool) -> None:
        turn = commit.after
        is_anybodys = turn.is_at_work and turn.attempt_in_flight is None and commit.lease is None
        self.wakeups.announce(turn.identity.turn_id, runnable=is_anybodys, is_progress=is_progress)

    def _tell_of_conversation(self, commit: Commit) -> None:
        """A turn of it begins."""
        identity = commit.after.identity
        key = conversation_key(identity.tenant_id, identity.conversation_id)
        self.wakeups.announce(key, runnable=False)

    async def _reload(self, turn: Turn) -> Turn:
        found = await self.store.load(turn.identity.turn_id)
        if found is None:
            message = f"turn {turn.identity.turn_id!r} is gone"
            raise ClaimLost(message)
        return found

    async def _happened(self, commit: Commit, error: OutcomeUnknown) -> bool:
        """Whether the journal holds this commit; asked until the database answers."""
        for seconds in _LOOK_AGAIN_SECONDS:
            with suppress(StoreUnavailable):
                return await _in_journal(self.store, commit)
            await asyncio.sleep(seconds)
        raise error


def _is_all(commit: Commit) -> bool:
    """Whether what the commit says is all that was ever said in the conversation."""
    match commit.events[0]:
        case TurnStarted(first_position=0):
            return not commit.brought
        case _:
            return False


def _tell(listener: Listener, commit: Commit) -> None:
    """What a listener raises is its own affair: the change is stored, and others go by it."""
    try:
        listener(commit)
    except Exception:  # noqa: BLE001 - whatever it raises
        _log.exception("listener_failed", turn_id=commit.after.identity.turn_id)


async def _pause_or_give_up(pauses: Iterator[float], error: OutcomeUnknown) -> None:
    """A database that answers but takes no commit, a replica say, is not asked in a rush."""
    seconds = next(pauses, None)
    if seconds is None:
        raise error
    await asyncio.sleep(seconds)


async def _in_journal(store: TurnStore, commit: Commit) -> bool:
    turn_id: TurnId = commit.after.identity.turn_id
    rows = await store.journal(turn_id, after=commit.before.version, limit=1)
    if not rows or tuple(rows[0].events) != tuple(commit.events):
        return False
    if commit.successor is None:
        return True
    # Somebody else may have ended the turn just so, and opened another one.
    return await store.load(commit.successor.turn.identity.turn_id) is not None
