"""A user's message: it opens a turn, goes on with one that waits, or is one we have already.

Where its sender says so, it waits for a turn at work: for its end, or for its next boundary.

What it means is decided in `app.services.drafts`. Two messages that race are decided one after the
other: the loser is decided anew on what it finds then.
"""

from dataclasses import dataclass, replace
from functools import partial

import structlog

from app.ports import (
    Lookup,
    OutcomeUnknown,
    Receipt,
    StoredTurn,
    VersionConflict,
)
from app.runner.commit import Written
from app.runner.lost_answer import lost_answer
from app.services.deps import Caller, Services
from app.services.drafts import (
    Draft,
    calls_at_the_end,
    digest_of,
    opening,
    request_to,
    turn_that_has,
)
from app.services.errors import Contended
from app.services.found import get_turn, require_agent
from app.services.orphans import orphan_held
from app.turn.errors import Rejected, TurnTerminal
from app.turn.ids import MessageId, TurnId
from app.turn.inputs import LostAnswer, Replan
from app.turn.state import Turn
from app.turn.states import WaitingForCalls
from app.turn.status import BLOCKED, Status
from app.turn.transcript import ContentPart, UserMessage

_MOST_TRIES = 10
_MOST_UNKNOWN = 2
_REPLAN = "REPLAN_WITH_MESSAGE"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message that has been taken."""

    stored: StoredTurn
    seen_version: int
    """The turn's version before the message: events behind it are what the message brought."""
    is_replay: bool = False
    """Its id was known: it had been taken before, as far as this process can tell."""


async def post_message(services: Services, caller: Caller, draft: Draft) -> Posted:
    """The turn that has taken the message.

    Raises:
        ConversationBusy: the conversation's turn is at work and the message does not wait or its
            queue is full, or it is another agent's, or in the way of a message that must open one.
        PayloadInvalid: the message id stood for another content, or the agent is unknown.
        ConversationNotFound: the conversation is somebody else's.
        AgentVersionUnavailable: the waiting turn's agent cannot be loaded here.
        Contended: it lost every race.
        OutcomeUnknown: the database takes no commits now; with its id it may safely be repeated.
    """
    digest = digest_of(draft.content)
    unknown = 0
    for _ in range(_MOST_TRIES):
        found = await services.conversations.look_up(
            caller.principal.scope, draft.conversation_id, draft.message_id
        )
        if (known := turn_that_has(draft, found)) is not None:
            stored = await _taken_before(services, caller, draft.action, known)
            return Posted(stored=stored, seen_version=0, is_replay=True)
        try:
            posted = await _decided(services, caller, draft, found, digest)
        except OutcomeUnknown:
            unknown += 1
            if unknown == _MOST_UNKNOWN:
                raise
            continue  # if it did happen, the message id is found now
        if posted is not None:
            return posted
    raise Contended("the conversation changed again and again; send the message once more")


async def _decided(
    services: Services, caller: Caller, draft: Draft, found: Lookup, digest: str
) -> Posted | None:
    """The turn with the message; `None` when somebody else was faster."""
    receipt = Receipt(message_id=draft.message_id, digest=digest)
    try:
        if found.active is None:
            return await _opened(services, caller, draft, found, receipt)
        return await _gone_on(services, caller, draft, found.active, receipt)
    except VersionConflict as reason:
        _log.info("message_raced", conversation_id=draft.conversation_id, reason=str(reason))
        return None
    except TurnTerminal:
        return None  # it ended in this moment, so the message opens the next turn
    except Rejected:
        if await _is_taken(services, caller, draft):
            return None  # the same message came twice at once, and the other one was taken
        raise


async def _opened(
    services: Services, caller: Caller, draft: Draft, found: Lookup, receipt: Receipt
) -> Posted:
    unanswered = await calls_at_the_end(services, caller, found)
    conversation, commit = opening(services, caller, draft, found, unanswered)
    identity = commit.after.identity
    audit = caller.entry(
        draft.action, conversation_id=conversation.conversation_id, turn_id=identity.turn_id
    )
    command_of = partial(caller.opening, audit, receipt=receipt)
    opened = await services.writer.open(conversation, commit, command_of)
    return Posted(stored=opened.stored, seen_version=0)


async def _gone_on(
    services: Services, caller: Caller, draft: Draft, active: StoredTurn, receipt: Receipt
) -> Posted:
    turn = active.turn
    audit = caller.entry(
        draft.action,
        conversation_id=draft.conversation_id,
        turn_id=turn.identity.turn_id,
    )
    command_of = partial(caller.command, audit, receipt=receipt)
    async with orphan_held(services, caller, turn) as held:
        given = request_to(services, draft, active, is_orphaned=held is not None)
        if held is not None or turn.status is Status.PAUSED:
            given = replace(given, lost=await _lost(services, turn))
        if held is None:
            return _posted(await services.writer.request(turn, given, command_of))
        written = await services.writer.request_under(held.claim, turn, given, command_of)
        held.done(written)
    return _posted(written)


async def _lost(services: Services, turn: Turn) -> LostAnswer:
    """What is stored of the answer that a dead worker has left."""
    text, reasoning = await lost_answer(services.turns, turn)
    return LostAnswer(text=text, reasoning=reasoning)


def _posted(written: Written) -> Posted:
    return Posted(stored=written.stored, seen_version=written.seen_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A message that takes the place of whatever a turn waits for."""

    turn_id: TurnId
    content: tuple[ContentPart, ...]
    message_id: MessageId


async def replan(
    services: Services,
    caller: Caller,
    given: Replacement,
    *,
    expected_version: int | None = None,
) -> Posted:
    """The turn, going on with the message; every open call is closed, nothing is an answer (T87).

    Raises:
        TurnNotFound, PayloadInvalid, AgentVersionUnavailable, Contended: as for a message.
        Rejected: the turn waits for nothing.
        VersionMoved: it is not at `expected_version`.
    """
    digest = digest_of(given.content)
    for _ in range(_MOST_TRIES):
        stored = await get_turn(services, caller, given.turn_id)
        conversation_id = stored.turn.identity.conversation_id
        draft = Draft(
            conversation_id=conversation_id, content=given.content, message_id=given.message_id
        )
        found = await services.conversations.look_up(
            caller.principal.scope, conversation_id, given.message_id
        )
        if (known := turn_that_has(draft, found)) is not None:
            taken = await _taken_before(services, caller, _REPLAN, known)
            return Posted(stored=taken, seen_version=0, is_replay=True)
        if stored.turn.status in BLOCKED and not isinstance(stored.turn.state, WaitingForCalls):
            require_agent(services, stored)  # else it only closes calls (T97)
        audit = caller.entry(_REPLAN, conversation_id=conversation_id, turn_id=given.turn_id)
        message = UserMessage(message_id=given.message_id, content=given.content)
        receipt = Receipt(message_id=given.message_id, digest=digest)
        try:
            written = await services.writer.request(
                stored.turn,
                Replan(message=message, lost=await _lost(services, stored.turn)),
                partial(caller.command, audit, receipt=receipt),
                expected_version=expected_version,
            )
        except VersionConflict:
            continue
        return _posted(written)
    raise Contended("the turn changed again and again; send the command once more")


async def _taken_before(
    services: Services, caller: Caller, action: str, turn_id: TurnId
) -> StoredTurn:
    stored = await get_turn(services, caller, turn_id)
    conversation_id = stored.turn.identity.conversation_id
    audit = caller.entry(action, conversation_id=conversation_id, turn_id=turn_id)
    await services.audit.record(audit, await caller.kept(stored))
    return stored


async def _is_taken(services: Services, caller: Caller, draft: Draft) -> bool:
    found = await services.conversations.look_up(
        caller.principal.scope, draft.conversation_id, draft.message_id
    )
    return found.received is not None
