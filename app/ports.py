"""What the runner and the services ask of the outside, as small protocols.

A port exists where there are two implementations (a model provider and the scripted one, a local
tool and one behind HTTP) or where the arrow must point inward (the store). None is wider than its
callers need.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from app.turn.agent import Agent, ToolSpec
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.ids import AgentId, AgentVersion, CallId, TurnId
from app.turn.transcript import ModelAnswer as ModelAnswer  # noqa: PLC0414 - part of ModelEvent
from app.turn.transcript import Outcome

Clock: TypeAlias = Callable[[], datetime]
"""Now, aware and in UTC, by the database's clock."""

NewId: TypeAlias = Callable[[str], str]
"""A fresh opaque id with the given prefix, such as `turn` or `fail`."""


# --- The model -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model: everything it needs and nothing that must be looked up."""

    model: str
    """The model's name without its provider."""
    instructions: str
    messages: Sequence[str]
    """The history, one JSON text per message, as stored (see docs/adr/0004)."""
    tools: Sequence[ToolSpec]
    attempt: int
    """Requests sent so far in this turn, this one included; from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    text: str


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | ModelAnswer | ModelFailure | RequestRefused
"""Deltas, then exactly one of the last three."""


class ModelClient(Protocol):
    """A provider of model answers."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the answer as it comes, ending with an answer, a failure or a refusal.

        A failing provider is news, not an exception: whatever the provider or the network does
        comes out as a `ModelFailure`. An exception out of this iterator is a fault of ours.
        Closing the iterator closes the connection. Safe to call concurrently.
        """
        ...


class ModelDirectory(Protocol):
    """Finds the client for a model's name at the moment of a call."""

    def resolve(self, model: str | None) -> "ResolvedModel | ModelFailure":
        """Endpoint and key as they are now; a missing key is a failure the turn can wait for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    client: ModelClient
    model: str
    provider: str


# --- Tools and agents ----------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool said; an error is said to the model, not raised."""

    outcome: Literal[Outcome.COMPLETED, Outcome.ERROR, Outcome.NOT_STARTED]
    content: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedAgent:
    """A version of an agent together with its tools, by name."""

    agent: Agent
    tools: Mapping[str, Tool]


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
