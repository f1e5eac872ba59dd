"""A turn that the caller may see, and the agent it is bound to."""

from app.ports import LoadedAgent, StoredTurn
from app.runner.exact_agent import exact_agent
from app.services.deps import Caller, Services
from app.services.errors import AgentVersionUnavailable, TurnNotFound
from app.turn.ids import TurnId


async def get_turn(services: Services, caller: Caller, turn_id: TurnId) -> StoredTurn:
    """Raises `TurnNotFound` for a turn that is not there or not the caller's to see, alike."""
    found = await services.turns.find(caller.principal.scope, turn_id)
    if found is None:
        raise TurnNotFound(f"there is no turn {turn_id!r}")
    return found


def require_agent(services: Services, stored: StoredTurn) -> LoadedAgent:
    """The agent a turn is bound to.

    Raises:
        AgentVersionUnavailable: it cannot be loaded here; never replaced by another version.
    """
    identity = stored.turn.identity
    loaded = exact_agent(services.catalog, identity)
    if loaded is None:
        detail = (
            f"turn {identity.turn_id!r} is bound to agent {identity.agent_id!r} version "
            f"{identity.agent_version!r}, which is not there"
        )
        raise AgentVersionUnavailable(detail, stored.turn)
    return loaded
