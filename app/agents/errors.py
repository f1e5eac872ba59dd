"""Why the agents cannot be served as declared; each message says what to change.

AgentError
  AgentDeclarationError    one declaration is out of its ranges
  AgentsNotLoadedError     TURNKEEPER_AGENTS names nothing that can be used
  AgentDeclaredTwice       one version, two declarations, in one process
  AgentVersionChanged      one version, two declarations, now and at an earlier start
"""

from app.turn.ids import AgentId, AgentVersion


class AgentError(Exception):
    """The agents cannot be served as declared."""


class AgentDeclarationError(AgentError, ValueError):
    """An agent's declaration cannot be used."""


class AgentsNotLoadedError(AgentError):
    """The setting that names the user's agents leads to none."""


class AgentDeclaredTwice(AgentError):  # noqa: N818 - the fact, as its sibling below
    """Two declarations that differ go by the same id and version."""

    def __init__(
        self, agent_id: AgentId, version: AgentVersion, first_hash: str, second_hash: str
    ) -> None:
        super().__init__(
            f"agent {agent_id!r} is declared twice as version {version!r}, and the declarations "
            f"differ (hashes {first_hash} and {second_hash}); give one of them another version"
        )
        self.agent_id = agent_id
        self.version = version


class AgentVersionChanged(AgentError):  # noqa: N818 - the fact, as the design names it
    """A declared version is not what it was at an earlier start: turns are bound to that one."""

    def __init__(
        self, agent_id: AgentId, version: AgentVersion, old_hash: str, new_hash: str
    ) -> None:
        super().__init__(
            f"agent {agent_id!r} version {version!r} is already known with another declaration "
            f"(hash {old_hash}, now {new_hash}); give the changed agent a new version and keep "
            "the old one listed before it for as long as turns are bound to it"
        )
        self.agent_id = agent_id
        self.version = version
        self.old_hash = old_hash
        self.new_hash = new_hash
