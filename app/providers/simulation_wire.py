"""The simulated provider's answers in the bytes OpenAI sends."""

from collections.abc import Iterator

import orjson

from app.providers.simulation_script import AnswerReply, pieces
from app.providers.wire_json import JsonObject, as_text

_CREATED = 1_790_000_000
"""A fixed time: the same script gives the same bytes."""


def event_stream(reply: AnswerReply, model: str, *, has_usage: bool) -> Iterator[bytes]:
    """The streamed answer in the pieces it is sent in, a fault of its content included."""
    yield _chunk(model, {"role": "assistant", "content": None if reply.calls else ""})
    for piece in reply.reasoning:
        yield _chunk(model, {"reasoning_content": piece})
    for piece in reply.text:
        yield _chunk(model, {"content": piece})
    if reply.breaks_off:
        return
    for index, call in enumerate(reply.calls):
        for delta in _pieces_of(call, reply.argument_pieces):
            yield _chunk(model, {"tool_calls": [{"index": index, **delta}]})
    if reply.stream_error is not None:
        yield _event({"error": reply.stream_error})
        return
    yield _chunk(model, {}, reply.stop)
    if has_usage and reply.usage:
        yield _event({**_head(model, "chat.completion.chunk"), "choices": [], "usage": reply.usage})
    yield b"data: [DONE]\n\n"


def whole_body(reply: AnswerReply, model: str) -> bytes:
    """The answer as one JSON object, for a request that does not stream."""
    message: dict[str, object] = {"role": "assistant", "content": "".join(reply.text)}
    if reply.reasoning:
        message["reasoning_content"] = "".join(reply.reasoning)
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "finish_reason": reply.stop}
    body = {**_head(model, "chat.completion"), "choices": [choice], "usage": reply.usage}
    return orjson.dumps(body)


def _call(call: JsonObject) -> dict[str, object]:
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


def _pieces_of(call: JsonObject, count: int) -> Iterator[JsonObject]:
    """The call, its arguments in pieces; only the first has an id and a name."""
    first, *rest = pieces(as_text(call["arguments"]), count) or ("",)
    yield _call({**call, "arguments": first})
    for piece in rest:
        yield {"function": {"arguments": piece}}


def _chunk(model: str, delta: JsonObject, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({**_head(model, "chat.completion.chunk"), "choices": [choice]})


def _head(model: str, kind: str) -> dict[str, object]:
    return {"id": "chatcmpl-simulated", "object": kind, "created": _CREATED, "model": model}


def _event(value: JsonObject) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
