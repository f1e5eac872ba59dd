"""The agent a turn is bound to, and never another one."""

from app.ports import AgentCatalog, LoadedAgent
from app.turn.ids import Identity


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
