"""Tools and the agents that have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.ports.hooks import Hooks
from app.ports.tool_output import ToolOutput
from app.turn.agent import Agent, ToolSpec
from app.turn.ids import AgentId, AgentVersion, CallId, TurnId
from app.turn.inputs import InvalidOutput, ValidOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of the call it serves."""

    turn_id: TurnId
    call_id: CallId
    idempotency_key: str
    """The same over all attempts of this call."""
    attempt: int
    """From 1; raised each time the tool is entered."""
    is_replay: bool
    """Whether an earlier attempt may already have had its effect."""
    previous_error: str | None = None
    """What the attempt before this one failed with, if it is known to have failed."""
    scheduled_at: datetime | None = None
    """When this attempt was due, if it follows one that failed; it may begin earlier or later."""


class Tool(Protocol):
    """Something a model may ask for."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Validate the JSON arguments and do the work.

        Invalid arguments and exceptions of the tool come back as an `ERROR` output. Only
        cancellation passes through.
        """
        ...


class OutputReader(Protocol):
    """Reads final answers as values of the agent's output type."""

    def read(self, text: str) -> ValidOutput | InvalidOutput:
        """The value of a final answer, or what is wrong with it; raises nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedAgent:
    """A version of an agent together with its tools, by name, its output type and its hooks."""

    agent: Agent
    tools: Mapping[str, Tool]
    output: OutputReader | None = None
    """For final answers, where the agent declares an output type."""
    hooks: Hooks | None = None


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
