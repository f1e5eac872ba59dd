"""Event streams: the only use of sse-starlette."""

import socket
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.background import BackgroundTask
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import override

EVENT_STREAM: dict[str, Any] = {
    "description": "The turn's events as they come; docs/events.md has their types and ids.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
"""How an answer that is a stream is described."""

_HEARTBEAT_SECONDS = 15
_STALLED_SECONDS = None if hasattr(socket, "TCP_USER_TIMEOUT") else 60
"""Where the kernel cuts who takes nothing, who takes something slowly is left alone."""
_RETRY_MILLIS = 1_000
_LARGEST_WRITE_BYTES = 32 * 1024
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def frame(place: str, kind: str, line: bytes) -> bytes:
    """An event as it is sent; what it says is on one line, as JSON always is."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (place.encode(), kind.encode(), line)


class Frames:
    """What several readers are sent is encoded once: the last frames of a process.

    Memory is bounded in bytes, whoever reads what.
    """

    def __init__(self, largest_bytes: int = 4 * 1024 * 1024) -> None:
        self._left = largest_bytes
        self._largest_frame = largest_bytes // 16
        self._frames: OrderedDict[Hashable, bytes] = OrderedDict()

    def get(self, key: Hashable) -> bytes | None:
        """The frame of the event that `key` stands for, if it is here."""
        return self._frames.get(key)

    def keep(self, key: Hashable, frame: bytes) -> None:
        """For others who are sent the same; the oldest give way to it."""
        if len(frame) > self._largest_frame or key in self._frames:
            return
        self._frames[key] = frame
        self._left -= len(frame)
        while self._left < 0:
            self._left += len(self._frames.popitem(last=False)[1])


class _Held(EventSourceResponse):
    """Holds a context from its first byte until its reader has gone, however that comes."""

    held: AbstractContextManager[None]

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.held:
            await super().__call__(scope, receive, send)

    @override
    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        """Where the kernel cuts who takes nothing, a send has no time to be watched for."""
        if self.send_timeout is None:
            await send(message)
        else:
            await super()._send_with_timeout(send, message)


def event_stream(
    frames: AsyncIterator[Sequence[bytes]],
    headers: dict[str, str],
    *,
    open_while: AbstractContextManager[None],
    when_left: Callable[[], Awaitable[None]] | None = None,
) -> Response:
    """A stream with a comment every 15 s; a reader that takes nothing for 60 s is cut off.

    Frames that come together are sent together, as long as they are small. A frame is never sent
    in parts, since a heartbeat may come between two writes.

    Args:
        frames: what there is to send; the stream ends with it.
        headers: of the answer.
        open_while: a context that is open as long as the stream is.
        when_left: called when the reader has gone before the end.
    """
    is_complete = False

    async def written() -> AsyncGenerator[bytes]:
        nonlocal is_complete
        # At once, so that a reader knows that it is connected, and how soon to come back if not.
        yield f"retry: {_RETRY_MILLIS}\n\n".encode()
        async for together in frames:
            for part in _in_parts(together):
                yield part
        is_complete = True

    async def gone() -> None:
        if when_left is not None and not is_complete:
            await when_left()

    response = _Held(
        written(),
        headers=_HEADERS | headers,
        background=BackgroundTask(gone),
        ping=_HEARTBEAT_SECONDS,
        ping_message_factory=lambda: ServerSentEvent(comment="still here", sep="\n"),
        send_timeout=_STALLED_SECONDS,
        sep="\n",
    )
    response.held = open_while
    return response


def _in_parts(frames: Sequence[bytes]) -> list[bytes]:
    parts: list[bytes] = []
    for frame in frames:
        if parts and len(parts[-1]) + len(frame) <= _LARGEST_WRITE_BYTES:
            parts[-1] += frame
        else:
            parts.append(frame)
    return parts
