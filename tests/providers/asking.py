"""Short ways to ask a model client something and to take its answer apart."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from app.ports import ModelClient, ModelEvent, ModelRequest, TextDelta
from app.turn.agent import ToolSpec
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.transcript import ModelAnswer

Message: TypeAlias = Mapping[str, object]

DEMO_TOOLS = tuple(
    ToolSpec(name=name, description=name, parameters='{"type":"object"}')
    for name in ("orders_search", "warehouse_stock", "refunds_list", "note_save")
)


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def assistant(text: str | None, *call_ids: str, tool: str = "look") -> dict[str, object]:
    calls = [
        {"id": call_id, "type": "function", "function": {"name": tool, "arguments": "{}"}}
        for call_id in call_ids
    ]
    message: dict[str, object] = {"role": "assistant", "content": text}
    return {**message, "tool_calls": calls} if calls else message


def asking_for(answer: ModelAnswer) -> dict[str, object]:
    """The answer as a stored message."""
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.tool_name, "arguments": call.arguments},
        }
        for call in answer.tool_calls
    ]
    message: dict[str, object] = {"role": "assistant", "content": answer.text}
    return {**message, "tool_calls": calls} if calls else message


def result(call_id: str, content: str = "ok") -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def a_request(
    *messages: Message,
    model: str = "m",
    attempt: int = 1,
    instructions: str = "",
    tools: Sequence[ToolSpec] = (),
) -> ModelRequest:
    history = [json.dumps(message) for message in messages or (user("hello"),)]
    return ModelRequest(
        model=model, instructions=instructions, messages=history, tools=tools, attempt=attempt
    )


async def events_of(client: ModelClient, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in client.stream(request)]


async def ending_of(client: ModelClient, request: ModelRequest) -> ModelEvent:
    return (await events_of(client, request))[-1]


async def answer_of(client: ModelClient, request: ModelRequest) -> ModelAnswer:
    ending = await ending_of(client, request)
    assert isinstance(ending, ModelAnswer), ending
    return ending


async def failure_of(client: ModelClient, request: ModelRequest) -> ModelFailure:
    ending = await ending_of(client, request)
    assert isinstance(ending, ModelFailure), ending
    return ending


async def refusal_of(client: ModelClient, request: ModelRequest) -> RequestRefused:
    ending = await ending_of(client, request)
    assert isinstance(ending, RequestRefused), ending
    return ending


def text_of(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))
