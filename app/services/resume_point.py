"""Where a conversation can be resumed, and resuming it there without a new message.

A turn that waits for its model or is paused goes on by the command that is for it; one whose worker
is gone is taken up by the next; behind an ended turn, or a history from elsewhere, a new turn goes
on (T85, T60a, T100 to T114). Asking changes nothing (T112).
"""

from dataclasses import dataclass

from app.ports import Standing, VersionConflict
from app.runner.exact_agent import exact_agent
from app.services.commands import Commanded
from app.services.deps import Caller, Services
from app.services.errors import (
    Contended,
    ConversationNotFound,
    NoFailure,
    NothingToResume,
    PayloadInvalid,
)
from app.services.found import require_agent
from app.services.opening import open_behind
from app.services.orphans import orphan_held
from app.services.turns import resume, resume_orphan
from app.turn.changes import Changes
from app.turn.errors import CorrelationMismatch, TurnNotBlocked, TurnTerminal
from app.turn.ids import ConversationId, FailureId
from app.turn.inputs import Resume, RetryModel
from app.turn.resume_point import NotResumable, Resumable, ResumePoint, of_active, of_ended
from app.turn.state import Turn
from app.turn.states import Paused, WaitingForModel

_MOST_TRIES = 10
_ACTION = "RESUME_CONVERSATION"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAsked:
    """A resume as it was asked for."""

    failure_id: FailureId | None = None
    """The failure that the conversation's turn waits for now."""
    model: str | None = None
    """Called instead of the agent's from here on."""
    is_lenient: bool = False
    """Whether a finished answer is as good as resumed (W0-6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a conversation can be resumed, and how it stands."""

    standing: Standing
    point: ResumePoint

    @property
    def turn(self) -> Turn | None:
        """The turn that is to go on, or to be gone on from."""
        stored = self.standing.active or self.standing.last
        return None if stored is None else stored.turn


async def find_resume_point(
    services: Services, caller: Caller, conversation_id: ConversationId
) -> Found:
    """Where the conversation can be resumed now. Raises `ConversationNotFound`."""
    standing = await services.histories.standing(caller.principal.scope, conversation_id)
    if standing is None:
        raise ConversationNotFound(f"there is no conversation {conversation_id!r}")
    if standing.active is not None:
        turn = standing.active.turn
        loaded = exact_agent(services.catalog, turn.identity)
        agent = None if loaded is None else loaded.agent
        point = of_active(turn, agent, is_lost=standing.is_lost)
    else:
        last = standing.last
        point = of_ended(None if last is None else last.turn, standing.end)
    return Found(standing=standing, point=point)


async def resume_conversation(
    services: Services, caller: Caller, conversation_id: ConversationId, asked: ResumeAsked
) -> Commanded:
    """The turn that goes on.

    Raises:
        ConversationNotFound, AgentVersionUnavailable: as their names say.
        NothingToResume: it cannot be resumed, or need not be.
        CorrelationMismatch: the failure is missing, or another one is current (T60a).
        PayloadInvalid: another model is named for a turn whose step is under way.
        Contended: it lost every race.
    """
    for _ in range(_MOST_TRIES):
        found = await find_resume_point(services, caller, conversation_id)
        if isinstance(found.point, NotResumable):
            return await _without_effect(services, caller, found, found.point, asked)
        _require_current(found, found.point, asked.failure_id)
        try:
            if found.turn is not None and not found.turn.is_terminal:
                return await _gone_on(services, caller, found, found.turn, asked)
            return await _opened(services, caller, found, found.point, asked)
        except (VersionConflict, TurnTerminal, TurnNotBlocked):
            continue
    raise Contended("the conversation changed again and again; resume it once more")


async def _without_effect(
    services: Services, caller: Caller, found: Found, point: NotResumable, asked: ResumeAsked
) -> Commanded:
    last = found.standing.last
    if not (asked.is_lenient and point.reason == "completed" and last is not None):
        raise NothingToResume(point.reason, found.turn)
    identity = last.turn.identity
    audit = caller.entry(
        _ACTION, conversation_id=identity.conversation_id, turn_id=identity.turn_id
    )
    await services.audit.record(audit, await caller.kept(last, last.turn.version))
    return Commanded(stored=last, seen_version=last.turn.version)


def _require_current(found: Found, point: Resumable, given: FailureId | None) -> None:
    if given == point.failure_id:
        return
    if point.failure_id is not None and found.turn is not None:
        named = "no failure" if given is None else f"failure {given!r}"
        raise CorrelationMismatch(
            found.turn,
            f"turn {found.turn.identity.turn_id!r} waits for failure {point.failure_id!r}, and "
            f"the resume names {named}; resume with that failureId",
        )
    detail = f"the conversation waits for no failure, so failure {given!r} is not current"
    if found.turn is None:
        raise NoFailure(detail)
    raise CorrelationMismatch(found.turn, detail)


async def _gone_on(
    services: Services, caller: Caller, found: Found, turn: Turn, asked: ResumeAsked
) -> Commanded:
    turn_id = turn.identity.turn_id
    if isinstance(turn.state, WaitingForModel):
        retry = RetryModel(
            failure_id=turn.state.record.failure_id, changes=Changes(model=asked.model)
        )
        return await resume(services, caller, turn_id, retry)
    if isinstance(turn.state, Paused):
        return await resume(services, caller, turn_id, Resume(changes=Changes(model=asked.model)))
    return await _taken_up(services, caller, found, turn, asked)


async def _taken_up(
    services: Services, caller: Caller, found: Found, turn: Turn, asked: ResumeAsked
) -> Commanded:
    """A turn whose worker is gone is any worker's; nothing of it changes before one takes it.

    Unless its agent wants a person to decide, who has just decided (C25).
    """
    stored = found.standing.active
    if stored is None:
        raise TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    if asked.model is not None:
        raise PayloadInvalid("a turn that goes on from a lost step keeps its model", turn)
    loaded = require_agent(services, stored)
    identity = turn.identity
    if loaded.agent.on_crash == "pause":
        async with orphan_held(services, caller, turn) as held:
            if held is None:
                raise TurnNotBlocked(turn, f"turn {identity.turn_id!r} is at work again")
            return await resume_orphan(services, caller, stored, held)
    services.wakeups.announce(identity.turn_id, runnable=True)
    audit = caller.entry(
        _ACTION, conversation_id=identity.conversation_id, turn_id=identity.turn_id
    )
    await services.audit.record(audit, await caller.kept(stored, turn.version))
    return Commanded(stored=stored, seen_version=turn.version)


async def _opened(
    services: Services, caller: Caller, found: Found, point: Resumable, asked: ResumeAsked
) -> Commanded:
    """Behind what has ended, or was brought along, a new turn goes on (T114)."""
    standing = found.standing
    commit = await open_behind(
        services,
        caller,
        standing.conversation,
        point,
        first_position=standing.next_position,
        resumes=None if found.turn is None else found.turn.identity.turn_id,
        model=asked.model,
        action=_ACTION,
    )
    return Commanded(stored=commit.stored, seen_version=0)
