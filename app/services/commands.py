"""A command on one turn, carried out: the change, its audit row, and what a refusal lets happen."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from app.ports import AuditEntry, Command, Commit, Receipt, StoredTurn, VersionConflict
from app.services.deps import Caller, Services
from app.services.errors import Contended
from app.services.found import get_turn
from app.services.orphans import OrphanHeld
from app.turn import events as e
from app.turn.decide import decide_request
from app.turn.errors import WaitExpired
from app.turn.inputs import Request, TimePassed

Check: TypeAlias = Callable[[Commit], Awaitable[None]]
"""Raises what keeps the caller from a change that the turn admits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded:
    """A turn after a command."""

    stored: StoredTurn
    seen_version: int
    """The version before the command: events behind it are what the command brought."""

    @property
    def is_replay(self) -> bool:
        """Never: without a key a command that comes again is decided anew (C20)."""
        return False


async def carry_out(  # noqa: PLR0913 - what a command needs, and what it may need
    services: Services,
    caller: Caller,
    stored: StoredTurn,
    given: Request,
    audit: AuditEntry,
    *,
    receipt: Receipt | None = None,
    check: Check | None = None,
    expected_version: int | None = None,
    held: OrphanHeld | None = None,
) -> Commanded:
    """The turn once it has been told `given`.

    Raises:
        Rejected: the turn does not admit it.
        VersionMoved: it is not at `expected_version`.
        Contended: it lost every race.
        As `check` does, asked about the very change that would be made.
    """

    async def left_behind(commit: Commit) -> Command:
        if check is not None:
            await check(commit)
        return await caller.command(audit, commit, receipt=receipt)

    writer = services.writer
    request = writer.request if held is None else partial(writer.request_under, held.claim)
    try:
        written = await request(stored.turn, given, left_behind, expected_version=expected_version)
    except VersionConflict as error:
        raise Contended(str(error)) from error
    except WaitExpired as refusal:
        raise await _when_time_is_over(services, refusal) from refusal
    if held is not None:
        held.done(written)
    seen_version = written.seen_version
    if written.events:
        return Commanded(stored=written.stored, seen_version=seen_version)
    now = await get_turn(services, caller, stored.turn.identity.turn_id)
    await services.audit.record(audit, await caller.kept(now, seen_version))
    return Commanded(stored=now, seen_version=seen_version)


async def _when_time_is_over(services: Services, refusal: WaitExpired) -> WaitExpired:
    """The refusal of an answer that came too late, showing the turn as it is by then (T89).

    The refusal itself changes nothing. What the end of the time does is done now and not at the
    sweeper's next look, so that the caller is shown what came of it.
    """
    turn = refusal.turn
    comes = decide_request(turn, TimePassed(), at=services.clock())
    if all(isinstance(event, e.WaitExpired) for event in comes):
        return refusal  # it is kept
    try:
        written = await services.writer.time_passed(turn)
    except VersionConflict:
        return refusal
    return WaitExpired(written.turn, refusal.detail)
