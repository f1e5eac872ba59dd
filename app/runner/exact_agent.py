"""The agent a turn is bound to, and never another one."""

from app.ports import AgentCatalog, LoadedAgent
from app.turn.agent import Agent
from app.turn.ids import Identity
from app.turn.journal import JournalError
from app.turn.state import Turn


def exact_agent(catalog: AgentCatalog, identity: Identity) -> LoadedAgent | None:
    """The agent of that id and version, if the catalog has it.

    A catalog that answers with another one has none: a turn goes on with its own version or not
    at all (case 132).
    """
    loaded = catalog.load(identity.agent_id, identity.agent_version)
    if loaded is None:
        return None
    found = (loaded.agent.agent_id, loaded.agent.version)
    return loaded if found == (identity.agent_id, identity.agent_version) else None


def nobody(turn: Turn) -> LoadedAgent:
    """In place of an agent that is not here.

    Such a turn is claimed only to carry out a cancellation or a pause, which begins nothing and so
    asks nothing of an agent (T97).

    Raises:
        JournalError: nothing of the kind was asked for.
    """
    if not (turn.cancel_requested or turn.pause_requested):
        wrong = f"turn {turn.identity.turn_id!r} was claimed without its agent"
        raise JournalError(wrong)
    identity = turn.identity
    agent = Agent(
        agent_id=identity.agent_id, version=identity.agent_version, instructions="", model=None
    )
    return LoadedAgent(agent=agent, tools={})
