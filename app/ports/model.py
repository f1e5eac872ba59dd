"""The model: a request in, its answer as it comes, a failure as a value."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from app.turn.agent import ToolSpec
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.transcript import ModelAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model: everything it needs and nothing that must be looked up."""

    model: str
    """The model's name without its provider."""
    instructions: str
    messages: Sequence[str]
    """The history, one JSON text per message, as stored (see docs/adr/0004).

    It may end with an answer that paused: whoever gave it goes on with it, others get `GO_ON`.
    """
    tools: Sequence[ToolSpec]
    attempt: int
    """Requests sent so far in this turn, this one included; from 1."""
    max_output_tokens: int | None = None
    """At most so many in the answer; `None`: as the provider is configured."""


GO_ON = '{"role":"user","content":"Go on."}'
"""A word behind a history that does not end with what is to be answered; it is not kept."""


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

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
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


def _as_it_is(text: str | None) -> str | None:
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    client: ModelClient
    model: str
    provider: str
    discreet: Callable[[str | None], str | None] = field(default=_as_it_is, repr=False)
    """A text of the provider's without the key that it was asked with."""
    address: str = ""
    """Where its requests go, as far as that is configured."""
