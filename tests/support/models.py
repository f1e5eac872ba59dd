"""A model that says what a test tells it, when the test lets it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from app.ports import ModelAnswer, ModelEvent, ModelRequest, ResolvedModel, TextDelta
from app.turn.ids import CallId
from app.turn.transcript import ToolCall

Line: TypeAlias = ModelEvent | asyncio.Event
"""What is said next, or a gate to wait at."""


@dataclass(slots=True)
class Model:
    """A `ModelClient` and the directory it is found in; each request plays the next round."""

    rounds: Sequence[Sequence[Line]]
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with the first request."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request was dropped before its end."""

    def resolve(self, model: str | None) -> ResolvedModel:
        return ResolvedModel(client=self, model=model or "any", provider="a test")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        this = self.rounds[len(self.requests)]
        self.requests.append(request)
        self.asked.set()
        is_whole = False
        try:
            for line in this:
                if isinstance(line, asyncio.Event):
                    await line.wait()
                else:
                    is_whole = not isinstance(line, TextDelta)
                    yield line
        finally:
            if not is_whole:
                self.left.set()


def calls(*names: str, arguments: str = "{}") -> ModelAnswer:
    """An answer that asks for tools; their ids are A, B, C and so on."""
    asked = (
        ToolCall(call_id=CallId(chr(ord("A") + n)), tool_name=name, arguments=arguments)
        for n, name in enumerate(names)
    )
    return ModelAnswer(text="", tool_calls=tuple(asked))


def says(text: str) -> ModelAnswer:
    return ModelAnswer(text=text)
