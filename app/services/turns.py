"""Reading turns, and the commands on one."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from app.ports import Command, StoredTurn, VersionConflict
from app.services.deps import Caller, Services
from app.services.errors import Contended, TurnNotFound
from app.services.messages import require_agent
from app.turn.ids import ConversationId, TurnId
from app.turn.inputs import Cancel, ContinueNow, Retry, RetryModel
from app.turn.state import BLOCKED, Status, Turn

ResumeCommand: TypeAlias = RetryModel | Retry | ContinueNow

_ACTIONS = {RetryModel: "RETRY_MODEL", Retry: "RETRY", ContinueNow: "CONTINUE"}
_LOOK_SECONDS = 1.0


async def get_turn(services: Services, caller: Caller, turn_id: TurnId) -> StoredTurn:
    """Raises `TurnNotFound` for a turn that is not there or not the caller's to see, alike."""
    found = await services.turns.find(caller.principal.scope, turn_id)
    if found is None:
        raise TurnNotFound(f"there is no turn {turn_id!r}")
    return found


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded:
    """A turn after a command."""

    stored: StoredTurn
    seen_version: int
    """The version before the command: events behind it are what the command brought."""


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
        Rejected: the turn does not admit the command.
        VersionMoved: it is not at `expected_version`.
        Contended: it lost every race.
    """
    stored = await get_turn(services, caller, turn_id)
    if stored.turn.status in BLOCKED:
        require_agent(services, stored)
    failure_id = given.failure_id if isinstance(given, RetryModel) else None
    after = await _commanded(
        services, caller, stored, given, _ACTIONS[type(given)], failure_id, expected_version
    )
    return Commanded(stored=after, seen_version=stored.turn.version)


async def cancel(
    services: Services, caller: Caller, turn_id: TurnId, *, expected_version: int | None = None
) -> StoredTurn:
    """The turn, cancelled or about to be. Needs no agent: ending a turn always works (T97).

    Raises:
        TurnNotFound, TurnTerminal, VersionMoved, Contended: as their names say.
    """
    stored = await get_turn(services, caller, turn_id)
    return await _commanded(services, caller, stored, Cancel(), "CANCEL", None, expected_version)


async def _commanded(
    services: Services,
    caller: Caller,
    stored: StoredTurn,
    given: ResumeCommand | Cancel,
    action: str,
    failure_id: str | None,
    expected_version: int | None,
) -> StoredTurn:
    identity = stored.turn.identity
    audit = caller.entry(
        action,
        conversation_id=identity.conversation_id,
        turn_id=identity.turn_id,
        failure_id=failure_id,
    )
    try:
        written = await services.writer.request(
            stored.turn, given, Command(audit=audit), expected_version=expected_version
        )
    except VersionConflict as error:
        raise Contended(str(error)) from error
    if not written.events:
        await services.audit.record(audit)
    return await get_turn(services, caller, identity.turn_id)


async def wait_until_at_rest(
    services: Services, caller: Caller, stored: StoredTurn, *, seconds: float
) -> StoredTurn:
    """The turn once it waits or has ended, or as it is after `seconds`."""
    turn_id = stored.turn.identity.turn_id
    until = time.monotonic() + seconds
    with services.wakeups.watch(turn_id) as wakeup:
        while not is_at_rest(stored.turn) and (left := until - time.monotonic()) > 0:
            stored = await get_turn(services, caller, turn_id)
            if not is_at_rest(stored.turn):
                await wakeup.wait(min(left, _LOOK_SECONDS))
    return stored


def is_at_rest(turn: Turn) -> bool:
    return turn.is_terminal or turn.status in BLOCKED
