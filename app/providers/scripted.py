"""The demo model: streams at a human pace, calls the demo tools, and fails on request.

It needs no key and no network. Its failures are OpenAI's own bodies, read by the same classifier
as real ones.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from app.ports import ModelEvent, ModelRequest, ReasoningDelta, TextDelta
from app.providers.demo_script import Fail, Say, scene
from app.providers.failures import classify, interrupted
from app.providers.last_word import to_be_answered
from app.providers.wire_json import as_object, parsed
from app.turn.ids import CallId
from app.turn.transcript import ModelAnswer, StopReason, ToolCall, Usage

Sleep: TypeAlias = Callable[[float], Awaitable[object]]

WORDS_PER_SECOND = 30.0
THINKING_SECONDS = 0.4

_WORDS = re.compile(r"\s*\S+\s*?(?=\s|$)|\s+")
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedModel:
    """A `ModelClient` that plays the demo; see `demo_script` for what it does and when."""

    words_per_second: float = WORDS_PER_SECOND
    """More than 0; about 25 to 40 look like a person's reading pace."""
    thinking_seconds: float = THINKING_SECONDS
    """Before the first word; 0 or more."""
    sleep: Sleep = asyncio.sleep

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the scene's words one by one, then its answer or failure."""
        messages = [as_object(parsed(text)) for text in to_be_answered(request.messages)]
        tools = {tool.name for tool in request.tools}
        what = scene(messages, tools, request.attempt)
        await self.sleep(self.thinking_seconds)
        if isinstance(what, Fail):
            yield classify(what.evidence)
            return
        for word in words(what.reasoning):
            yield ReasoningDelta(text=word)
            await self.sleep(1 / self.words_per_second)
        for word in spoken(what):
            yield TextDelta(text=word)
            await self.sleep(1 / self.words_per_second)
        yield interrupted() if what.is_cut else _answer(what, request)


def words(text: str) -> Iterator[str]:
    """The text in pieces of one word each, which joined are the text."""
    return iter(_WORDS.findall(text))


def spoken(what: Say) -> list[str]:
    """The words that are said before the answer ends or breaks."""
    all_words = list(words(what.text))
    return all_words[: max(1, len(all_words) // 2)] if what.is_cut else all_words


def _answer(what: Say, request: ModelRequest) -> ModelAnswer:
    return ModelAnswer(
        text=what.text,
        reasoning=what.reasoning,
        tool_calls=tool_calls(what, len(request.messages)),
        stop_reason=StopReason.TOOL_USE if what.calls else StopReason.END_TURN,
        raw_stop="tool_calls" if what.calls else "stop",
        usage=_usage(what, request),
    )


def tool_calls(what: Say, position: int) -> tuple[ToolCall, ...]:
    """The scene's calls; an id is unique because it holds its place in the conversation."""
    return tuple(
        ToolCall(
            call_id=CallId(f"call_demo_{position}_{number}"),
            tool_name=call.name,
            arguments=call.arguments,
        )
        for number, call in enumerate(what.calls, start=1)
    )


def _usage(what: Say, request: ModelRequest) -> Usage:
    sent = len(request.instructions) + sum(len(message) for message in request.messages)
    said = len(what.text) + len(what.reasoning) + sum(len(call.arguments) for call in what.calls)
    return Usage(
        input_tokens=1 + sent // _CHARACTERS_PER_TOKEN,
        cached_input_tokens=0,
        output_tokens=1 + said // _CHARACTERS_PER_TOKEN,
    )
