"""A user's message, and what it means now: decided here, written by `app.services.messages`.

A message id is looked for before anything else, so that a repeated message is never refused for
what the first one has brought about.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import category

from app.ports import Commit, Conversation, LoadedAgent, Lookup, StoredTurn
from app.services.deps import Caller, Services
from app.services.errors import ConversationNotFound, PayloadInvalid
from app.services.found import require_agent
from app.services.opening import current_agent
from app.turn.decide_calls import only_closes_calls
from app.turn.errors import ConversationBusy
from app.turn.evolve import fold
from app.turn.ids import AgentId, ConversationId, Identity, MessageId, TurnId
from app.turn.inputs import PostMessage, WhenRunning
from app.turn.interruption import in_words_of
from app.turn.resume_point import Resumable, UnansweredCall, of_history
from app.turn.start import start
from app.turn.state import Turn
from app.turn.status import BLOCKED
from app.turn.transcript import ContentPart, TextPart, UserMessage, text_of

_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message as its sender gave it."""

    conversation_id: ConversationId
    content: tuple[ContentPart, ...]
    message_id: MessageId
    agent_id: AgentId | None = None
    is_in_new_conversation: bool = False
    """Whether the conversation is not the sender's choice: a new one, made for the message."""
    starts: bool = False
    """Whether it must open a turn: an active one is in its way then, a waiting one too (T3)."""
    when_running: WhenRunning = "reject"
    """Whether it waits for a turn at work: for its end, or for its next boundary (T7 to T9)."""
    recover_first: bool = False
    """Whether a turn whose worker is gone is brought to its end first, and this said behind it."""
    hold: bool = False
    """Whether the turn it opens waits for `RUN`; it opens one, then, or is refused (T11a)."""

    never_replay: bool = False
    """Whether no begun call of the turn it opens is run again by itself; it opens one, or is
    refused: what is promised to one turn holds for all of it."""

    @property
    def action(self) -> str:
        """The command by its name."""
        return "START_TURN" if self.starts else "MESSAGE"


def turn_that_has(draft: Draft, found: Lookup) -> TurnId | None:
    """The turn that took the message before, if one did (T2, T5).

    Raises:
        ConversationNotFound: the conversation is somebody else's.
        PayloadInvalid: the message id stood for another content (T6).
    """
    if found.foreign:
        raise ConversationNotFound(f"there is no conversation {draft.conversation_id!r}")
    if found.received is None:
        return None
    turn_id, known = found.received
    if known != digest_of(draft.content):
        raise PayloadInvalid(
            f"messageId {draft.message_id!r} was used for another content; "
            "give a new message a new id"
        )
    return turn_id


async def calls_at_the_end(
    services: Services, caller: Caller, found: Lookup
) -> Sequence[UnansweredCall]:
    """The calls at the end of a history from elsewhere that nobody has answered.

    Our own turns answer theirs before they end.
    """
    if not found.ends_imported or found.conversation is None:
        return ()
    standing = await services.histories.standing(
        caller.principal.scope, found.conversation.conversation_id
    )
    point = None if standing is None else of_history(standing.end)
    return point.unanswered if isinstance(point, Resumable) else ()


def opening(
    services: Services,
    caller: Caller,
    draft: Draft,
    found: Lookup,
    unanswered: Sequence[UnansweredCall] = (),
) -> tuple[Conversation, Commit]:
    """The turn that the message opens, and its conversation; nothing is written.

    Raises:
        PayloadInvalid: there is no agent to answer.
    """
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
    events = start(
        identity,
        message,
        first_position=found.next_position,
        at=now,
        held=draft.hold,
        never_replay=draft.never_replay,
        unanswered=unanswered,
    )
    events = in_words_of(agent.agent, fold(events), events)
    turn = fold(events)
    return conversation, Commit(before=turn, after=turn, events=events, at=now)


def request_to(
    services: Services, draft: Draft, active: StoredTurn, *, is_orphaned: bool = False
) -> PostMessage:
    """What the message asks of the conversation's turn; whether it fits is the turn's to say.

    One whose worker is gone goes on with it (T10a), so its agent must be there too.

    Raises:
        ConversationBusy: the turn is in its way, or another agent's (T3, T4, T11a).
        AgentVersionUnavailable: the turn's agent cannot be loaded here.
    """
    _leaves_room(draft, active.turn)
    message = UserMessage(message_id=draft.message_id, content=draft.content)
    # To a turn at work a message runs nothing, nor does one that only closes calls (T7, T8, T97).
    is_blocked = active.turn.status in BLOCKED
    if (is_blocked and not only_closes_calls(active.turn, message)) or is_orphaned:
        require_agent(services, active)
    return PostMessage(
        message=message,
        when_running=draft.when_running,
        is_orphaned=is_orphaned,
        recover_first=draft.recover_first,
    )


def _leaves_room(draft: Draft, turn: Turn) -> None:
    identity = turn.identity
    if draft.agent_id is not None and draft.agent_id != identity.agent_id:
        raise ConversationBusy(turn, f"the conversation's turn is agent {identity.agent_id!r}'s")
    if draft.starts or draft.hold or draft.never_replay:
        detail = (
            f"turn {identity.turn_id!r} of this conversation is {turn.status}; "
            "another one starts when it has ended"
        )
        raise ConversationBusy(turn, detail)


def _agent_for(services: Services, draft: Draft, found: Lookup) -> LoadedAgent:
    wanted = draft.agent_id or (found.conversation.agent_id if found.conversation else None)
    return current_agent(services, wanted)


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


def conversation_of(caller: Caller, message_id: MessageId) -> ConversationId:
    """The conversation of a message that names none: the same for the same message of a caller.

    So a message that is sent again, its answer being lost, does not open a second turn.
    """
    named = (caller.principal.tenant_id, caller.principal.actor_id, message_id)
    digest = hashlib.sha256("\0".join(named).encode())
    return ConversationId(f"ses_{digest.hexdigest()[:28]}")


def digest_of(content: Sequence[ContentPart]) -> str:
    """The same for the same content only: each part is framed by its kind and length."""
    digest = hashlib.sha256()
    for part in content:
        value = (part.text if isinstance(part, TextPart) else part.url).encode()
        digest.update(f"{part.kind}:{len(value)}:".encode() + value)
    return digest.hexdigest()
