"""A cheap, scripted, OpenAI-compatible chat-completions server: `python -m bench.stub_model PORT`.

A raw asyncio protocol with httptools and orjson, because it has to cost far less than what is
measured. What a call does is told by its script (`bench.stub_script`).

    GET /stats     counters since the last POST /reset
    GET /trace?K   [[arrived, answered], ...] of the turn with key K, by CLOCK_MONOTONIC
    POST /heal?K   its fault is over
"""

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import httptools
import orjson
import uvloop
from typing_extensions import override

from bench.stub_script import Fault, Plan, plan_of

_SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
_ERRORS: Mapping[Fault, tuple[bytes, bytes, dict[str, Any]]] = {
    "quota": (
        b"429 Too Many Requests",
        b"",
        {
            "message": "You exceeded your current quota, please check your plan.",
            "type": "insufficient_quota",
            "param": None,
            "code": "insufficient_quota",
        },
    ),
    "rate": (
        b"429 Too Many Requests",
        b"retry-after: 1\r\n",
        {
            "message": "Rate limit reached",
            "type": "requests",
            "param": None,
            "code": "rate_limit_exceeded",
        },
    ),
    "overload": (
        b"503 Service Unavailable",
        b"retry-after: 1\r\n",
        {
            "message": "The server is overloaded",
            "type": "server_error",
            "param": None,
            "code": "overloaded",
        },
    ),
}
_HEALED = 1 << 40


@dataclass(slots=True)
class _Counts:
    requests: int = 0
    words: int = 0
    body_bytes: int = 0
    busy: float = 0.0
    """Seconds from the arrival of a request to the end of its answer, in all."""
    first: float = 0.0
    """Seconds from there to the first word, in all."""
    faults: dict[str, int] = field(default_factory=dict)
    traces: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    cpu_before: float = field(default_factory=time.process_time)

    def stats(self) -> Mapping[str, float]:
        return {
            "requests": self.requests,
            "words": self.words,
            "body_bytes": self.body_bytes,
            "busy_s": self.busy,
            "first_s": self.first,
            "cpu_s": time.process_time() - self.cpu_before,
        }


class _Stub:
    def __init__(self) -> None:
        self.counts = _Counts()
        self.calls_made = 0

    def calls(self, plan: Plan, rounds: int) -> list[dict[str, Any]]:
        first = self.calls_made
        self.calls_made += plan.width
        return [
            {
                "id": f"call_{first + n:012d}",
                "type": "function",
                "function": {
                    "name": "lookup",
                    "arguments": f'{{"q":"source {rounds}.{n}","n":{plan.size}}}',
                },
            }
            for n in range(plan.width)
        ]


class _Http(asyncio.Protocol):
    def __init__(self, stub: _Stub) -> None:
        self._stub = stub
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._url = b""
        self._late: set[asyncio.Task[None]] = set()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # what TCP gives

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    @override
    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._close()

    def on_message_begin(self) -> None:
        self._body, self._url = [], b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        path, _, query = self._url.decode().partition("?")
        stub = self._stub
        match self._parser.get_method(), path:
            case _, "/v1/chat/completions":
                self._complete(b"".join(self._body))
            case _, "/stats":
                self._json(stub.counts.stats())
            case _, "/trace":
                self._json(stub.counts.traces.get(query, []))
            case b"POST", "/reset":
                stub.counts = _Counts()
                self._json({"ok": True})
            case b"POST", "/heal":
                stub.counts.faults[query] = _HEALED
                self._json({"ok": True})
            case _:
                self._json({"error": {"message": "not found"}}, b"404 Not Found")

    def _complete(self, body: bytes) -> None:
        arrived = time.perf_counter()
        counts = self._stub.counts
        counts.requests += 1
        counts.body_bytes += len(body)
        request = orjson.loads(body)
        plan, rounds = plan_of(request)
        is_final = rounds >= plan.rounds or not request.get("tools")
        fault = self._fault(plan, is_final=is_final)
        if fault is not None and fault != "cut":
            status, head, error = _ERRORS[fault]
            self._json({"error": error}, status, head)
            self._answered(plan, arrived)
            return
        calls = [] if is_final else self._stub.calls(plan, rounds)
        if request.get("stream"):
            self._stream(request, plan, calls, arrived, is_cut=fault == "cut")
        else:
            self._json(_whole(request, plan, calls))
            self._answered(plan, arrived)

    def _fault(self, plan: Plan, *, is_final: bool) -> Fault | None:
        fires = is_final or not (plan.fails_at_the_end or plan.fault == "cut")
        seen = self._stub.counts.faults.get(plan.key, 0)
        if plan.fault is None or not fires or seen >= plan.faults:
            return None
        self._stub.counts.faults[plan.key] = seen + 1
        return plan.fault

    def _stream(
        self,
        request: Mapping[str, Any],
        plan: Plan,
        calls: list[dict[str, Any]],
        arrived: float,
        *,
        is_cut: bool,
    ) -> None:
        model = str(request.get("model"))
        parts, tail = _parts(request, model, plan, calls)
        if is_cut:
            parts, tail = parts[: max(1, len(parts) // 2)], b""
        if plan.delay or plan.think:
            dripping = asyncio.create_task(self._drip(parts, tail, plan, arrived, is_cut=is_cut))
            self._late.add(dripping)
            dripping.add_done_callback(self._late.discard)
            return
        self._write(_SSE_HEAD + b"".join(parts) + tail)
        self._stub.counts.first += time.perf_counter() - arrived
        self._answered(plan, arrived)
        if is_cut:
            self._close()

    async def _drip(
        self, parts: list[bytes], tail: bytes, plan: Plan, arrived: float, *, is_cut: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + plan.think
        self._write(_SSE_HEAD)
        for place, part in enumerate(parts):
            due += plan.delay
            if (left := due - loop.time()) > 0:
                await asyncio.sleep(left)
            if place == 0:
                self._stub.counts.first += time.perf_counter() - arrived
            self._write(part)
        self._write(tail)
        self._answered(plan, arrived)
        if is_cut:
            self._close()

    def _answered(self, plan: Plan, arrived: float) -> None:
        counts, now = self._stub.counts, time.perf_counter()
        counts.busy += now - arrived
        if plan.key.startswith("t"):
            counts.traces.setdefault(plan.key, []).append((arrived, now))

    def _json(self, value: object, status: bytes = b"200 OK", head: bytes = b"") -> None:
        body = orjson.dumps(value)
        length = b"content-length: %d\r\n\r\n" % len(body)
        kind = b"content-type: application/json\r\n"
        self._write(b"HTTP/1.1 " + status + b"\r\n" + kind + head + length + body)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _whole(request: Mapping[str, Any], plan: Plan, calls: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else _words(plan)}
    if calls:
        message["tool_calls"] = calls
    finish = "tool_calls" if calls else "stop"
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _usage(plan),
    }


def _parts(
    request: Mapping[str, Any], model: str, plan: Plan, calls: list[dict[str, Any]]
) -> tuple[list[bytes], bytes]:
    begin = _chunk(model, {"role": "assistant", "content": None if calls else ""})
    if calls:
        asked = [
            _chunk(model, {"tool_calls": [{**call, "index": n}]}) for n, call in enumerate(calls)
        ]
        parts = [begin + b"".join(asked)]
    else:
        word = _chunk(model, {"content": "lorem "})
        parts = [begin + word, *[word] * (plan.words - 1)]
    tail = _chunk(model, {}, "tool_calls" if calls else "stop")
    options: Mapping[str, object] = request.get("stream_options") or {}
    if options.get("include_usage"):
        tail += _frame({**_head(model), "choices": [], "usage": _usage(plan)})
    done = b"data: [DONE]\n\n"
    return parts, tail + b"%x\r\n%b\r\n0\r\n\r\n" % (len(done), done)


def _chunk(model: str, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _frame({**_head(model), "choices": [choice]})


def _head(model: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
    }


def _frame(value: Mapping[str, Any]) -> bytes:
    data = b"data: " + orjson.dumps(value) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def _usage(plan: Plan) -> dict[str, int]:
    return {
        "prompt_tokens": 10,
        "completion_tokens": plan.words,
        "total_tokens": 10 + plan.words,
    }


def _words(plan: Plan) -> str:
    return "lorem " * plan.words


async def _serve(port: int) -> None:
    stub = _Stub()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Http(stub), "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
