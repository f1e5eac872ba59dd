"""Tools and the agents that have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from app.ports.forms import FrozenForm
from app.ports.hooks import Hooks
from app.ports.policy import Policy
from app.ports.tool_context import ToolContext
from app.ports.tool_output import ToolOutput
from app.turn.agent import Agent, ToolSpec
from app.turn.ids import AgentId, AgentVersion
from app.turn.inputs import InvalidOutput, ValidOutput
from app.turn.waits import InputNeeded, Unusable


class Tool(Protocol):
    """Something a model may ask for."""

    @property
    def spec(self) -> ToolSpec: ...

    def look_at(self, arguments: str) -> InputNeeded | Unusable | None:
        """What the JSON arguments come to before anybody is asked, or the tool entered.

        `Unusable` where they do not fit, what the user is asked for where that is all the tool
        does, else `None`.
        """
        ...

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Validate the JSON arguments and do the work.

        Invalid arguments and exceptions of the tool come back as an `ERROR` output. Only
        cancellation passes through.

        Raises:
            NotLocalError: somebody else does it.
        """
        ...


def is_stoppable(tool: Tool) -> bool:
    """Whether a call of the tool that is cancelled has ended.

    One that runs in a thread has not: it goes on to its own end. A tool that says nothing has.
    """
    return bool(getattr(tool, "is_stoppable", True))


class NotLocalError(RuntimeError):
    """A tool was to be run here that somebody outside or the user carries out."""


@runtime_checkable
class TakesForms(Protocol):
    """A tool that shows the model which forms there are."""

    def with_forms(self, forms: Sequence[FrozenForm]) -> Tool:
        """The same tool, for an agent that has these forms."""
        ...


class OutputReader(Protocol):
    """Reads final answers as values of the agent's output type."""

    def read(self, text: str) -> ValidOutput | InvalidOutput:
        """The value of a final answer, or what is wrong with it; raises nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedAgent:
    """A version of an agent together with its tools, by name, and whatever else of it is code."""

    agent: Agent
    tools: Mapping[str, Tool]
    output: OutputReader | None = None
    """For final answers, where the agent declares an output type."""
    hooks: Hooks | None = None
    policy: Policy | None = None
    forms: Mapping[str, FrozenForm] = field(default_factory=dict[str, FrozenForm])
    """By key."""


class AgentCatalog(Protocol):
    """The agents this process can run."""

    def current(self, agent_id: AgentId | None) -> LoadedAgent | None:
        """The version new turns get; `None` as id means the default agent."""
        ...

    def load(self, agent_id: AgentId, version: AgentVersion) -> LoadedAgent | None:
        """Exactly that version or nothing; never another one."""
        ...

    def all(self) -> Sequence[Agent]:
        """The current version of every agent, the default one first."""
        ...

    def versions(self) -> Sequence[tuple[AgentId, AgentVersion]]:
        """Everything that can be loaded here."""
        ...
