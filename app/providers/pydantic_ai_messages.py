"""A request as Pydantic AI takes it, from messages that were stored in OpenAI's form."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import (
    ModelRequest as Asked,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from app.ports import ModelRequest
from app.providers.last_word import to_be_answered
from app.providers.opaque import unsealed
from app.providers.wire_json import JsonObject, as_array, as_object, as_text, parsed_object

_KEPT = "response"


def parameters(request: ModelRequest) -> ModelRequestParameters:
    """The tools of a request."""
    tools = [
        ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=dict(parsed_object(tool.parameters) or {}),
        )
        for tool in request.tools
    ]
    return ModelRequestParameters(function_tools=tools)


def history(request: ModelRequest, *, maker: str) -> list[ModelMessage]:
    """The messages of a request; what the user says and what tools return is put together."""
    asked: list[ModelRequestPart] = []
    messages: list[ModelMessage] = []
    names: dict[str, str] = {}
    instructions = (request.instructions.strip() and request.instructions) or None
    for text in to_be_answered(request.messages):
        body = dict(parsed_object(text) or {})
        if body.get("role") != "assistant":
            asked.extend(_asked(body, names))
            continue
        response = _response(body, maker)
        if not response.parts:  # all of it was for somebody else
            continue
        if asked:
            messages.append(Asked(parts=asked, instructions=instructions))
            asked = []
        names |= {part.tool_call_id: part.tool_name for part in response.tool_calls}
        messages.append(response)
    return [*messages, Asked(parts=asked, instructions=instructions)] if asked else messages


def kept(response: ModelResponse) -> JsonObject:
    """What must go back with an answer: all of it, where a part is signed or otherwise special."""
    is_plain = all(isinstance(part, TextPart | ToolCallPart) for part in response.parts)
    details = (
        part.provider_details for part in response.parts if hasattr(part, "provider_details")
    )
    if is_plain and not any(details):
        return {}
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    return {_KEPT: dumped}


def _asked(body: JsonObject, names: Mapping[str, str]) -> Iterator[ModelRequestPart]:
    if body.get("role") == "tool":
        call_id = as_text(body.get("tool_call_id"))
        yield ToolReturnPart(
            tool_name=names.get(call_id, ""),
            content=as_text(body.get("content")),
            tool_call_id=call_id,
        )
        return
    content = list(_content(body.get("content")))
    if content:
        yield UserPromptPart(content=content)


def _content(content: object) -> Iterator[UserContent]:
    parts: Sequence[object] = as_array(content) or [{"type": "text", "text": content}]
    for part in map(as_object, parts):
        url, text = as_text(as_object(part.get("image_url")).get("url")), as_text(part.get("text"))
        if url:
            yield ImageUrl(url=url)
        elif text.strip():
            yield text


def _response(body: dict[str, object], maker: str) -> ModelResponse:
    """The answer as it was, where this maker gave it and it is the same still."""
    plan = unsealed(body, maker)
    said = list(_said(body))
    try:
        (restored,) = ModelMessagesTypeAdapter.validate_python([plan[_KEPT]] if plan else [])
    except (ValidationError, ValueError, KeyError):
        return ModelResponse(parts=said)
    is_same = isinstance(restored, ModelResponse) and _words(restored.parts) == _words(said)
    return (
        restored if isinstance(restored, ModelResponse) and is_same else ModelResponse(parts=said)
    )


def _said(body: JsonObject) -> Iterator[ModelResponsePart]:
    text = as_text(body.get("content"))
    if text.strip():
        yield TextPart(content=text)
    for call in map(as_object, as_array(body.get("tool_calls"))):
        function = as_object(call.get("function"))
        yield ToolCallPart(
            tool_name=as_text(function.get("name")),
            args=as_text(function.get("arguments")),
            tool_call_id=as_text(call.get("id")),
        )


def _words(parts: Sequence[ModelResponsePart]) -> tuple[str, list[str]]:
    """What makes two answers the same: their text, and which calls they ask for."""
    text = "".join(part.content for part in parts if isinstance(part, TextPart))
    calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
    return text.strip(), calls
