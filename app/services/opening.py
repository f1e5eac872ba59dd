"""Turns that come into being behind a history, and the agent they are bound to."""

from collections.abc import Sequence
from functools import partial

from app.ports import Commit, Conversation, LoadedAgent
from app.services.changing import recorded, require_allowed
from app.services.deps import Caller, Services
from app.services.errors import PayloadInvalid
from app.turn.changes import Changes
from app.turn.evolve import fold
from app.turn.ids import AgentId, Identity, TurnId
from app.turn.interruption import in_words_of
from app.turn.resume_point import Resumable
from app.turn.start import go_on
from app.turn.transcript import Message


async def open_behind(  # noqa: PLR0913 - what a turn that goes on consists of
    services: Services,
    caller: Caller,
    conversation: Conversation,
    point: Resumable,
    *,
    first_position: int,
    resumes: TurnId | None,
    model: str | None,
    action: str,
    history: Sequence[Message] = (),
) -> Commit:
    """A turn goes on from `point` of the conversation's history, without a message of a user.

    Args:
        services: what the use case stands on.
        caller: who asks for it.
        conversation: where; with `history`, a new one that brings it along.
        point: where the history is resumed.
        first_position: the first free place behind the history.
        resumes: the turn that had the history before.
        model: what the turn calls instead of its agent's.
        action: the command by its name, for the audit.
        history: what a new conversation brings along.

    Raises:
        PayloadInvalid: the conversation's agent is not there, or does not know the model.
        Forbidden: the agent's version does not let the caller name a model.
        As `TurnWriter.open`.
    """
    agent = current_agent(services, conversation.agent_id)
    changes = Changes(model=model)
    require_allowed(caller, agent.agent, changes)
    identity = Identity(
        turn_id=TurnId(services.new_id("turn")),
        tenant_id=conversation.tenant_id,
        conversation_id=conversation.conversation_id,
        agent_id=agent.agent.agent_id,
        agent_version=agent.agent.version,
    )
    now = services.clock()
    events = go_on(
        identity, point, first_position=first_position, at=now, resumes=resumes, model=model
    )
    events = in_words_of(agent.agent, fold(events), events)
    turn = fold(events)
    commit = Commit(before=turn, after=turn, events=events, at=now, brought=history)
    audit = caller.entry(
        action,
        conversation_id=conversation.conversation_id,
        turn_id=identity.turn_id,
        changes=recorded(changes),
    )
    return await services.writer.open(conversation, commit, partial(caller.opening, audit))


def current_agent(services: Services, agent_id: AgentId | None) -> LoadedAgent:
    """The agent's current version; of the default one for `None`.

    Raises:
        PayloadInvalid: there is no such agent.
    """
    loaded = services.catalog.current(agent_id)
    if loaded is None:
        raise PayloadInvalid(f"there is no agent {agent_id!r}")
    return loaded
