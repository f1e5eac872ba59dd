"""The agents this process can run, each version by its exact name."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from app.agents.declaration import Agent
from app.agents.errors import AgentDeclarationError, AgentDeclaredTwice, AgentVersionChanged
from app.ports import LoadedAgent
from app.turn.agent import Agent as CoreAgent
from app.turn.ids import AgentId, AgentVersion

Key: TypeAlias = tuple[AgentId, AgentVersion]


class Catalog:
    """All declared versions; implements `app.ports.AgentCatalog`.

    The agent listed first is the default one. Of several versions of an agent the one listed last
    is the current one.

    Raises:
        AgentDeclaredTwice: one id and version with two declarations that differ.
        AgentDeclarationError: no agent at all.
    """

    def __init__(self, declared: Sequence[Agent]) -> None:
        if not declared:
            msg = "a catalog needs at least one agent; declare one"
            raise AgentDeclarationError(msg)
        self._loaded: dict[Key, LoadedAgent] = {}
        self._hashes: dict[Key, str] = {}
        self._current: dict[AgentId, LoadedAgent] = {}
        for agent in declared:
            self._add(agent)

    def current(self, agent_id: AgentId | None) -> LoadedAgent | None:
        """The version new turns get; `None` as id means the default agent."""
        if agent_id is None:
            return next(iter(self._current.values()))
        return self._current.get(agent_id)

    def load(self, agent_id: AgentId, version: AgentVersion) -> LoadedAgent | None:
        """Exactly that version or nothing; never another one."""
        return self._loaded.get((agent_id, version))

    def all(self) -> Sequence[CoreAgent]:
        """The current version of every agent, the default one first."""
        return tuple(each.agent for each in self._current.values())

    def versions(self) -> Sequence[Key]:
        """Everything that can be loaded here, old versions included."""
        return tuple(self._loaded)

    def declarations(self) -> Mapping[Key, str]:
        """The hash of the declaration behind each id and version, old versions included."""
        return MappingProxyType(self._hashes)

    def require_unchanged(self, known: Mapping[Key, str]) -> None:
        """Compare with the hashes known from earlier starts; versions not declared are ignored.

        Raises:
            AgentVersionChanged: a version declared here is known with another declaration.
        """
        for (agent_id, version), now in self._hashes.items():
            before = known.get((agent_id, version), now)
            if before != now:
                raise AgentVersionChanged(agent_id, version, before, now)

    def _add(self, agent: Agent) -> None:
        loaded = agent.loaded()
        key = (loaded.agent.agent_id, loaded.agent.version)
        now = agent.declaration_hash
        before = self._hashes.setdefault(key, now)
        if before != now:
            raise AgentDeclaredTwice(*key, before, now)
        self._loaded[key] = loaded
        self._current[loaded.agent.agent_id] = loaded
