"""Reading turns, and the commands on one."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias

from app.ports import InterruptedCall, StoredTurn
from app.runner.commit import VersionMoved
from app.runner.exact_agent import exact_agent
from app.services.changing import recorded, require_allowed
from app.services.commands import Commanded, carry_out
from app.services.deps import Caller, Services
from app.services.errors import Contended
from app.services.found import get_turn, require_agent
from app.services.orphans import OrphanHeld, orphan_held
from app.services.principal import Principal
from app.turn.actions import Action, actions
from app.turn.failures import FailureRecord
from app.turn.ids import ConversationId, TurnId
from app.turn.inputs import (
    Cancel,
    ContinueNow,
    Pause,
    Resume,
    Retry,
    RetryModel,
    Run,
)
from app.turn.offering import with_changes
from app.turn.resuming import does_not_fit
from app.turn.state import Turn
from app.turn.status import BLOCKED, Status

ResumeCommand: TypeAlias = RetryModel | Retry | ContinueNow | Resume | Run
LimitChange: TypeAlias = Mapping[str, Any]
"""Fields of `Limits` with their new values."""

_ACTIONS = {
    RetryModel: "RETRY_MODEL",
    Retry: "RETRY",
    ContinueNow: "CONTINUE",
    Resume: "RESUME",
    Run: "RUN",
    Pause: "PAUSE",
    Cancel: "CANCEL",
}
_MOST_TRIES = 10


def offered(services: Services, turn: Turn, principal: Principal | None) -> Sequence[Action]:
    """What may be done to the turn now, with the changes that `principal` may make."""
    loaded = exact_agent(services.catalog, turn.identity)
    found = actions(turn, at=services.clock(), agent_is_there=loaded is not None)
    if loaded is None or principal is None or not principal.may_command:
        return [replace(each, changes=()) for each in found]
    by_operator = principal.is_operator
    return [with_changes(each, turn, loaded.agent, by_operator=by_operator) for each in found]


async def list_turns(
    services: Services,
    caller: Caller,
    *,
    statuses: Sequence[Status],
    conversation_id: ConversationId | None,
    before: tuple[datetime, TurnId] | None,
    limit: int,
) -> Sequence[StoredTurn]:
    return await services.turns.page(
        caller.principal.scope,
        statuses=statuses,
        conversation_id=conversation_id,
        before=before,
        limit=limit,
    )


async def list_failures(
    services: Services, caller: Caller, turn_id: TurnId, *, after: int, limit: int
) -> Sequence[FailureRecord]:
    """The turn's failures behind the model attempt `after`. Raises `TurnNotFound`."""
    await get_turn(services, caller, turn_id)
    return await services.turns.failures(turn_id, after=after, limit=limit)


async def list_interruptions(
    services: Services, caller: Caller, turn_id: TurnId, *, after: int, limit: int
) -> Sequence[InterruptedCall]:
    """The turn's interrupted calls behind the position `after`. Raises `TurnNotFound`."""
    await get_turn(services, caller, turn_id)
    return await services.turns.interruptions(turn_id, after=after, limit=limit)


async def resume(
    services: Services,
    caller: Caller,
    turn_id: TurnId,
    given: ResumeCommand,
    *,
    expected_version: int | None = None,
) -> Commanded:
    """The turn, going on.

    Raises:
        TurnNotFound, AgentVersionUnavailable: as their names say.
        Forbidden, PayloadInvalid: the agent's version does not let this caller change that.
        Rejected: the turn does not admit the command.
        VersionMoved: it is not at `expected_version`.
        Contended: it lost every race.
    """
    stored = await get_turn(services, caller, turn_id)
    if stored.turn.status in BLOCKED or stored.turn.is_held:
        agent = require_agent(services, stored).agent
        if isinstance(given, RetryModel | Resume):
            require_allowed(caller, agent, given.changes)
    failure_id = given.failure_id if isinstance(given, RetryModel) else None
    return await _commanded(services, caller, stored, given, failure_id, expected_version)


async def resume_orphan(
    services: Services, caller: Caller, stored: StoredTurn, held: OrphanHeld
) -> Commanded:
    """A turn whose worker is gone, going on because a person has said so.

    Raises:
        Rejected, Contended: as for `resume`.
    """
    given = Resume(is_orphaned=True)
    return await _commanded(services, caller, stored, given, None, None, held=held)


async def resume_with(
    services: Services,
    caller: Caller,
    turn_id: TurnId,
    command: RetryModel | Resume,
    change: LimitChange,
    *,
    expected_version: int | None = None,
) -> Commanded:
    """A turn, going on with the command's changes and under limits of which some are others (C16).

    Raises:
        Forbidden: the turn's version of its agent lets this caller not change that.
        As `resume` for the rest.
    """
    for _ in range(_MOST_TRIES):
        stored = await get_turn(services, caller, turn_id)
        if stored.turn.status not in BLOCKED:
            raise does_not_fit(stored.turn, _ACTIONS[type(command)])
        limits = stored.turn.limits_under(require_agent(services, stored).agent)
        changes = replace(command.changes, limits=replace(limits, **change))
        given = replace(command, changes=changes)
        # What is not named stays as it is, also when another operator has just changed it.
        version = stored.turn.version if expected_version is None else expected_version
        try:
            return await resume(services, caller, turn_id, given, expected_version=version)
        except VersionMoved:
            if expected_version is not None:
                raise
    raise Contended("the turn changed again and again; send the command once more")


async def pause(
    services: Services, caller: Caller, turn_id: TurnId, *, expected_version: int | None = None
) -> Commanded:
    """The turn, paused or about to be. Needs no agent.

    Raises:
        TurnNotFound, WrongCommand, TurnTerminal, VersionMoved, Contended: as their names say.
    """
    stored = await get_turn(services, caller, turn_id)
    return await _commanded(services, caller, stored, Pause(), None, expected_version)


async def cancel(
    services: Services, caller: Caller, turn_id: TurnId, *, expected_version: int | None = None
) -> Commanded:
    """The turn, cancelled or about to be. Needs no agent: ending a turn always works (T97).

    Raises:
        TurnNotFound, TurnTerminal, VersionMoved, Contended: as their names say.
    """
    stored = await get_turn(services, caller, turn_id)
    async with orphan_held(services, caller, stored.turn) as held:
        if held is None:
            return await _commanded(services, caller, stored, Cancel(), None, expected_version)
        at_once = Cancel(is_orphaned=True)
        return await _commanded(
            services, caller, stored, at_once, None, expected_version, held=held
        )


async def _commanded(
    services: Services,
    caller: Caller,
    stored: StoredTurn,
    given: ResumeCommand | Pause | Cancel,
    failure_id: str | None,
    expected_version: int | None,
    *,
    held: OrphanHeld | None = None,
) -> Commanded:
    identity = stored.turn.identity
    audit = caller.entry(
        _ACTIONS[type(given)],
        conversation_id=identity.conversation_id,
        turn_id=identity.turn_id,
        failure_id=failure_id,
        changes=recorded(given.changes) if isinstance(given, RetryModel | Resume) else None,
    )
    return await carry_out(
        services, caller, stored, given, audit, expected_version=expected_version, held=held
    )


async def wait_until_at_rest(
    services: Services,
    caller: Caller,
    stored: StoredTurn,
    *,
    seconds: float,
    stopping: asyncio.Event,
) -> StoredTurn:
    """The turn once it is at rest; as it is after `seconds`, or when the process stops."""
    return await _wait_while(
        lambda turn: turn.is_at_work, services, caller, stored, seconds=seconds, stopping=stopping
    )


async def wait_for_change(
    services: Services,
    caller: Caller,
    stored: StoredTurn,
    *,
    seconds: float,
    stopping: asyncio.Event,
) -> StoredTurn:
    """The turn once it is at another version; as it is after `seconds`, or at the process's end.

    Raises:
        TurnNotFound: it was deleted meanwhile, or is not the caller's to see any more.
    """
    version = stored.turn.version
    return await _wait_while(
        lambda turn: turn.version == version,
        services,
        caller,
        stored,
        seconds=seconds,
        stopping=stopping,
    )


async def _wait_while(
    is_so: Callable[[Turn], bool],
    services: Services,
    caller: Caller,
    stored: StoredTurn,
    *,
    seconds: float,
    stopping: asyncio.Event,
) -> StoredTurn:
    turn_id = stored.turn.identity.turn_id
    until = time.monotonic() + seconds
    if seconds <= 0 or not is_so(stored.turn):
        return stored
    with services.journals.followed(turn_id) as following:
        may_have_changed = True
        while is_so(stored.turn) and not stopping.is_set():
            if may_have_changed:
                stored = await get_turn(services, caller, turn_id)
            left = until - time.monotonic()
            if left <= 0 or not is_so(stored.turn):
                break
            may_have_changed = await following.change_from(stored.turn.version, within_seconds=left)
    return stored
