"""A request of the Anthropic wire, from messages that were stored in OpenAI's form.

What this wire demands and the other does not: the roles take turns and a user speaks first, all
results of a round stand in one user message directly behind the calls, nothing is empty, ids and
names are of few characters, tools are declared wherever a history holds calls, and an answer has a
limit.
"""

from collections.abc import Iterator, Mapping, Sequence

import orjson

from app.ports import GO_ON, ModelRequest
from app.providers.anthropic_plan import PAUSED, followed
from app.providers.opaque import unsealed
from app.providers.tool_call_parts import object_text
from app.providers.wire_ids import plain_id, plain_name
from app.providers.wire_json import (
    JsonObject,
    as_array,
    as_object,
    as_text,
    mended,
    parsed_object,
)

DEFAULT_MAX_TOKENS = 8_192
"""The wire demands a limit; every model since Claude 3.5 allows this one."""

_BEFORE_THE_FIRST: dict[str, object] = {
    "role": "user",
    "content": [{"type": "text", "text": "(What was said before is not kept.)"}],
}
"""In front of an answer with which a history begins that was brought along."""

_GO_ON = (parsed_object(GO_ON) or {}).get("content")


def request_body(request: ModelRequest, *, maker: str, extra: Mapping[str, object]) -> bytes:
    """The request as JSON; `extra` goes over the defaults, `None` leaves a field out."""
    messages = list(_turns(request.messages, maker))
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, _BEFORE_THE_FIRST)
    if messages and messages[-1]["role"] == "assistant" and not _is_gone_on_with(request, maker):
        messages.append({"role": "user", "content": list(_parts(_GO_ON))})
    body: dict[str, object] = {
        "model": request.model,
        "max_tokens": DEFAULT_MAX_TOKENS,
        "stream": True,
        "messages": messages,
        **_tools(request, messages),
        **extra,
    }
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    if request.instructions.strip():
        body["system"] = mended(request.instructions)
    return orjson.dumps({name: value for name, value in body.items() if value is not None})


def _is_gone_on_with(request: ModelRequest, maker: str) -> bool:
    """Whether the history ends with an answer that paused, and this is who has given it."""
    body = dict(parsed_object(request.messages[-1]) or {})
    return bool(unsealed(body, maker).get(PAUSED))


def _turns(messages: Sequence[str], maker: str) -> Iterator[dict[str, object]]:
    """The messages, those of one role behind one another put together."""
    role: str = ""
    content: list[JsonObject] = []
    for message in messages:
        body = dict(parsed_object(message) or {})
        blocks = list(_blocks(body, maker))
        speaker = "assistant" if body.get("role") == "assistant" else "user"
        if blocks and speaker != role:
            if content:
                yield {"role": role, "content": content}
            role, content = speaker, []
        content += blocks
    if content:
        yield {"role": role, "content": content}


def _blocks(body: dict[str, object], maker: str) -> Iterator[JsonObject]:
    match body.get("role"):
        case "assistant":
            yield from _said(body, maker)
        case "tool":
            yield _result(body)
        case _:
            yield from _parts(body.get("content"))


def _said(body: dict[str, object], maker: str) -> Iterator[JsonObject]:
    plan = unsealed(body, maker)
    text = as_text(body.get("content"))
    calls = [_call(as_object(call)) for call in as_array(body.get("tool_calls"))]
    blocks = followed(plan, text, calls)
    yield from [*_parts(text), *calls] if blocks is None else blocks


def _call(call: JsonObject) -> JsonObject:
    function = as_object(call.get("function"))
    arguments = as_text(function.get("arguments"))
    return {
        "type": "tool_use",
        "id": plain_id(as_text(call.get("id"))),
        "name": plain_name(as_text(function.get("name"))),
        # as the model wrote them: a large number would lose digits on the way through Python
        "input": orjson.Fragment(object_text(arguments) or "{}"),
    }


def _result(body: JsonObject) -> JsonObject:
    result = {"type": "tool_result", "tool_use_id": plain_id(as_text(body.get("tool_call_id")))}
    content = mended(as_text(body.get("content")))
    return {**result, "content": content} if content.strip() else result


def _parts(content: object) -> Iterator[JsonObject]:
    """Blocks for a content of OpenAI's form; blank text is left out."""
    parts = as_array(content) or [{"type": "text", "text": content}]
    for part in map(as_object, parts):
        url = as_text(as_object(part.get("image_url")).get("url"))
        text = mended(as_text(part.get("text")))
        if url:
            yield {"type": "image", "source": _image(url)}
        elif text.strip():
            yield {"type": "text", "text": text}


def _image(url: str) -> JsonObject:
    """Where the image is, or the image itself from a `data:` URL."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        media_type = head.removeprefix("data:").removesuffix(";base64")
        return {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "url", "url": url}


def _tools(request: ModelRequest, messages: Sequence[JsonObject]) -> Mapping[str, object]:
    if request.tools:
        return {
            "tools": [
                {
                    "name": plain_name(tool.name),
                    **({"description": tool.description} if tool.description.strip() else {}),
                    "input_schema": orjson.Fragment(tool.parameters),
                }
                for tool in request.tools
            ]
        }
    names = sorted(_called(messages))
    if not names:
        return {}
    schema = {"type": "object"}
    tools = [{"name": name, "input_schema": schema} for name in names]
    return {"tools": tools, "tool_choice": {"type": "none"}}


def _called(messages: Sequence[JsonObject]) -> set[str]:
    """The tools a history speaks of: they must be declared even where there are none now."""
    blocks = (as_object(b) for message in messages for b in as_array(message.get("content")))
    return {as_text(block.get("name")) for block in blocks if block.get("type") == "tool_use"}
