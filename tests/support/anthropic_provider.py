"""A provider of the Anthropic wire on a free loopback port: it plays rounds, and checks requests.

The round of a request is the number of assistant turns in it, so that a request that is repeated
gets the same round again.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.entrypoints.serving import Listener
from tests.support.strict_anthropic import Block, fault, signature

KEY = "the-key-of-the-tests"
_DELTAS = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}


def thinking(text: str, *call_ids: str) -> Block:
    """A signed block of thinking in front of these calls."""
    return {"type": "thinking", "thinking": text, "signature": signature(text, call_ids)}


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def tool_use(call_id: str, name: str, **given: object) -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


@dataclass(slots=True)
class AnthropicProvider:
    """What it is to say, and what it was asked."""

    base_url: str = ""
    rounds: Sequence[Sequence[Block]] = ()
    pauses: frozenset[int] = frozenset()
    """Rounds that end with `pause_turn`; the request behind one must end with it."""
    outages: list[int] = field(default_factory=list[int])
    """Statuses of the next requests; 200 for one whose round is played."""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    refusals: list[str] = field(default_factory=list[str])
    """Why requests were refused; empty in the end, or the service is at fault."""

    _paused: int = 0
    """Answers in a row that have paused."""

    async def messages(self, request: Request) -> Response:
        """`POST /v1/messages`."""
        body: dict[str, Any] = orjson.loads(await request.body())
        self.requests.append(body)
        has_key = request.headers.get("x-api-key") == KEY
        has_version = bool(request.headers.get("anthropic-version"))
        played = sum(turn["role"] == "assistant" for turn in body["messages"])
        played += max(self._paused - 1, 0)  # answers behind one another come back as one turn
        before = self.rounds[played - self._paused : played] if self._paused else None
        paused = None if before is None else [block for blocks in before for block in blocks]
        why = (
            fault(body, paused=paused)
            if has_key and has_version
            else "x-api-key or anthropic-version"
        )
        if why is not None:
            self.refusals.append(why)
            return _error(400, "invalid_request_error", why)
        status = self.outages.pop(0) if self.outages else 200
        if status != 200:
            return _error(status, "overloaded_error", "Overloaded")
        stop = "pause_turn" if played in self.pauses else None
        self._paused = self._paused + 1 if stop else 0
        return StreamingResponse(_events(self.rounds[played], stop), media_type="text/event-stream")


@asynccontextmanager
async def running_anthropic() -> AsyncGenerator[AnthropicProvider]:
    """Serve it until the block ends."""
    provider = AnthropicProvider()
    app = Starlette(routes=[Route("/v1/messages", provider.messages, methods=["POST"])])
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=10)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with Listener.bind("127.0.0.1", 0, variable="the port") as listener:
        await server.startup(sockets=[listener.socket])
        provider.base_url = listener.url
        try:
            yield provider
        finally:
            await server.shutdown(sockets=[listener.socket])


def _error(status: int, kind: str, message: str) -> Response:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return JSONResponse(body, status_code=status)


def _events(blocks: Sequence[Block], stop_reason: str | None) -> Iterator[bytes]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 30, "output_tokens": 1}
    yield _event("message_start", message={"id": "msg_1", "content": [], "usage": usage})
    for index, block in enumerate(blocks):
        yield from _block(index, block)
    has_calls = any(block["type"] == "tool_use" for block in blocks)
    usual = "tool_use" if has_calls else "end_turn"
    stop = {"stop_reason": stop_reason or usual, "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": 7})
    yield _event("message_stop")


def _block(index: int, block: Block) -> Iterator[bytes]:
    """A block as it streams: begun empty, in two deltas, then closed."""
    deltas: list[Mapping[str, Any]] = []
    start = dict(block)
    if block["type"] in _DELTAS:
        name, delta = _DELTAS[block["type"]]
        said, start[name] = block[name], ""
        half = len(said) // 2
        deltas = [{"type": delta, name: said[:half]}, {"type": delta, name: said[half:]}]
    if "signature" in block:
        start["signature"] = ""
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    if "input" in block:
        start["input"] = {}
        given = orjson.dumps(block["input"]).decode()
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", given)]
    yield _event("content_block_start", index=index, content_block=start)
    for delta_of_block in deltas:
        yield _event("content_block_delta", index=index, delta=delta_of_block)
    yield _event("content_block_stop", index=index)


def _event(kind: str, **fields: object) -> bytes:
    data = orjson.dumps({"type": kind, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)
