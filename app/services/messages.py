"""A user's message: it opens a turn, goes on with one that waits, or is one we have already.

A message id is looked for before anything else, so that a repeated message is never refused for
what the first one has brought about. Two messages that race are decided one after the other: the
loser is decided anew on what it finds then.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from unicodedata import category

import structlog

from app.ports import (
    Command,
    Commit,
    Conversation,
    LoadedAgent,
    Lookup,
    OutcomeUnknown,
    Receipt,
    StoredTurn,
    VersionConflict,
)
from app.runner.commit import Written
from app.services.deps import Caller, Services
from app.services.errors import (
    Contended,
    ConversationNotFound,
    PayloadInvalid,
    TurnNotFound,
)
from app.services.found import get_turn, require_agent
from app.turn.errors import ConversationBusy, Rejected, TurnTerminal
from app.turn.evolve import fold
from app.turn.ids import AgentId, ConversationId, Identity, MessageId, TurnId
from app.turn.inputs import PostMessage, Replan
from app.turn.start import start
from app.turn.state import BLOCKED
from app.turn.transcript import ContentPart, TextPart, UserMessage, text_of

_MOST_TRIES = 10
_MOST_UNKNOWN = 2
_TITLE_CHARACTERS = 80

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message as its sender gave it."""

    conversation_id: ConversationId
    content: tuple[ContentPart, ...]
    message_id: MessageId
    agent_id: AgentId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message that has been taken."""

    stored: StoredTurn
    seen_version: int
    """The turn's version before the message: events behind it are what the message brought."""


async def post_message(services: Services, caller: Caller, draft: Draft) -> Posted:
    """The turn that has taken the message.

    Raises:
        ConversationBusy: the conversation's turn is at work, or is another agent's.
        PayloadInvalid: the message id stood for another content, or the agent is unknown.
        ConversationNotFound: the conversation is somebody else's.
        AgentVersionUnavailable: the waiting turn's agent cannot be loaded here.
        Contended: it lost every race.
        OutcomeUnknown: the database takes no commits now; with its id it may safely be repeated.
    """
    digest = _digest(draft.content)
    unknown = 0
    for _ in range(_MOST_TRIES):
        found = await services.conversations.look_up(
            caller.principal.scope, draft.conversation_id, draft.message_id
        )
        if found.foreign:
            raise ConversationNotFound(f"there is no conversation {draft.conversation_id!r}")
        if found.received is not None:
            stored = await _taken_before(services, caller, draft, found, digest)
            return Posted(stored=stored, seen_version=0)
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
    agent = _agent_for(services, draft, found)
    conversation = found.conversation or _new_conversation(services, caller, draft, agent)
    identity = Identity(
        turn_id=TurnId(services.new_id("turn")),
        tenant_id=conversation.tenant_id,
        conversation_id=conversation.conversation_id,
        agent_id=agent.agent.agent_id,
        agent_version=agent.agent.version,
    )
    message = UserMessage(message_id=draft.message_id, content=draft.content)
    now = services.clock()
    events = start(identity, message, first_position=found.next_position, at=now)
    turn = fold(events)
    audit = caller.entry(
        "MESSAGE", conversation_id=conversation.conversation_id, turn_id=identity.turn_id
    )
    commit = Commit(before=turn, after=turn, events=events, at=now)
    command = Command(audit=audit, receipt=receipt, kept=await caller.kept(commit.stored))
    try:
        await services.turns.create(conversation, commit, command)
    except OutcomeUnknown:
        if await services.turns.load(identity.turn_id) is None:
            raise
    services.wakeups.announce(identity.turn_id, runnable=True)
    return Posted(stored=commit.stored, seen_version=0)


async def _gone_on(
    services: Services, caller: Caller, draft: Draft, active: StoredTurn, receipt: Receipt
) -> Posted:
    turn = active.turn
    if draft.agent_id is not None and draft.agent_id != turn.identity.agent_id:
        detail = f"the conversation's turn is agent {turn.identity.agent_id!r}'s"
        raise ConversationBusy(turn, detail)
    require_agent(services, active)
    audit = caller.entry(
        "MESSAGE",
        conversation_id=draft.conversation_id,
        turn_id=turn.identity.turn_id,
    )
    message = UserMessage(message_id=draft.message_id, content=draft.content)
    written = await services.writer.request(
        turn, PostMessage(message=message), partial(caller.command, audit, receipt=receipt)
    )
    return _posted(written)


def _posted(written: Written) -> Posted:
    return Posted(stored=written.stored, seen_version=written.turn.version - len(written.events))


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
    digest = _digest(given.content)
    for _ in range(_MOST_TRIES):
        stored = await get_turn(services, caller, given.turn_id)
        conversation_id = stored.turn.identity.conversation_id
        draft = Draft(
            conversation_id=conversation_id, content=given.content, message_id=given.message_id
        )
        found = await services.conversations.look_up(
            caller.principal.scope, conversation_id, given.message_id
        )
        if found.received is not None:
            taken = await _taken_before(services, caller, draft, found, digest)
            return Posted(stored=taken, seen_version=0)
        if stored.turn.status in BLOCKED:
            require_agent(services, stored)
        audit = caller.entry(
            "REPLAN_WITH_MESSAGE", conversation_id=conversation_id, turn_id=given.turn_id
        )
        message = UserMessage(message_id=given.message_id, content=given.content)
        receipt = Receipt(message_id=given.message_id, digest=digest)
        try:
            written = await services.writer.request(
                stored.turn,
                Replan(message=message),
                partial(caller.command, audit, receipt=receipt),
                expected_version=expected_version,
            )
        except VersionConflict:
            continue
        return _posted(written)
    raise Contended("the turn changed again and again; send the command once more")


async def _taken_before(
    services: Services, caller: Caller, draft: Draft, found: Lookup, digest: str
) -> StoredTurn:
    if found.received is None:
        raise TurnNotFound(f"no turn took message {draft.message_id!r}")
    turn_id, known = found.received
    if known != digest:
        raise PayloadInvalid(
            f"messageId {draft.message_id!r} was used for another content; "
            "give a new message a new id"
        )
    stored = await get_turn(services, caller, turn_id)
    audit = caller.entry("MESSAGE", conversation_id=draft.conversation_id, turn_id=turn_id)
    await services.audit.record(audit, await caller.kept(stored))
    return stored


async def _is_taken(services: Services, caller: Caller, draft: Draft) -> bool:
    found = await services.conversations.look_up(
        caller.principal.scope, draft.conversation_id, draft.message_id
    )
    return found.received is not None


def _agent_for(services: Services, draft: Draft, found: Lookup) -> LoadedAgent:
    wanted = draft.agent_id or (found.conversation.agent_id if found.conversation else None)
    loaded = services.catalog.current(wanted)
    if loaded is None:
        raise PayloadInvalid(f"there is no agent {wanted!r}")
    return loaded


def _new_conversation(
    services: Services, caller: Caller, draft: Draft, agent: LoadedAgent
) -> Conversation:
    now = services.clock()
    return Conversation(
        tenant_id=caller.principal.tenant_id,
        conversation_id=draft.conversation_id,
        owner_id=caller.principal.actor_id,
        agent_id=agent.agent.agent_id,
        title=title_of(draft.content),
        created_at=now,
        updated_at=now,
    )


def title_of(content: Sequence[ContentPart]) -> str:
    """The beginning of the text, on one line without control characters; at most 80 characters."""
    line = " ".join(text_of(tuple(content)).split())
    return "".join(each for each in line if category(each) != "Cc")[:_TITLE_CHARACTERS]


def _digest(content: Sequence[ContentPart]) -> str:
    """The same for the same content only: each part is framed by its kind and length."""
    digest = hashlib.sha256()
    for part in content:
        value = (part.text if isinstance(part, TextPart) else part.url).encode()
        digest.update(f"{part.kind}:{len(value)}:".encode() + value)
    return digest.hexdigest()
