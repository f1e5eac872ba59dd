"""Bodies of requests: read once, within limits, and as JSON, before anything else sees them.

What cannot be read here never reaches a route, so the audit and the routes always read the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

_LARGEST_BYTES = 1024 * 1024
_LARGEST_IMPORT_BYTES = 4 * 1024 * 1024
_IMPORTS = "/conversations"
"""Where a history may be brought along."""
_LARGEST_RESULT_BYTES = 6 * 1024 * 1024
"""Of a command on a waiting turn, which may bring the result of an outside tool."""
_IS_RESUME = re.compile(r"/turns/[^/]+/resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a body is not taken: a problem's code and detail."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A request's body as far as it could be read."""

    content: bytes = b""
    said: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The JSON object it holds; empty when it holds none."""
    fault: Fault | None = None


async def read_body(scope: Scope, receive: Receive) -> Body:
    """The whole body; one that is too large is not read to its end.

    Raises:
        ClientDisconnect: the caller left before the body was complete.
    """
    largest = _largest(scope["path"])
    content = await _content(receive, largest)
    if content is None:
        return _refused("payload_too_large", f"the limit is {largest} bytes")
    if not content:
        return Body()
    fault = _not_plain_json(Headers(scope=scope))
    if fault is not None:
        return _refused("unsupported_media_type", fault)
    try:
        said: object = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        return _refused("bad_request", f"the body is not JSON: {error.msg}")
    is_object = isinstance(said, dict)
    return Body(content=content, said=cast("Mapping[str, Any]", said) if is_object else {})


def replayed(body: Body, receive: Receive) -> Receive:
    """The body once more, then whatever else comes, such as the caller's leaving."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body.content, "more_body": False}

    return replay


def _largest(path: str) -> int:
    if path == _IMPORTS:
        return _LARGEST_IMPORT_BYTES
    return _LARGEST_RESULT_BYTES if _IS_RESUME.fullmatch(path) else _LARGEST_BYTES


async def _content(receive: Receive, largest: int) -> bytes | None:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > largest:
            return None
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _refused(code: str, detail: str) -> Body:
    return Body(fault=Fault(code=code, detail=detail))


def _not_plain_json(headers: Headers) -> str | None:
    """What a body that is not declared as plain JSON has to change; it is never guessed at."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return "send the body as application/json"
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return "send the body without compression"
    return None
