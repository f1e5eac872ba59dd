"""Event streams: the only use of sse-starlette."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.responses import Response

EVENT_STREAM: dict[str, Any] = {
    "description": "The turn's events as they come; docs/events.md has their types and ids.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
"""How an answer that is a stream is described."""

_HEARTBEAT_SECONDS = 15
_STALLED_SECONDS = 60
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    id: str
    type: str
    data: str
    """JSON on one line."""


def event_stream(events: AsyncIterator[Sequence[StreamEvent]], headers: dict[str, str]) -> Response:
    """A stream with a comment every 15 s; a reader that takes nothing for 60 s is cut off.

    Events that come together are sent together.
    """

    async def frames() -> AsyncIterator[bytes]:
        async for together in events:
            yield b"".join(map(_encoded, together))

    return EventSourceResponse(
        frames(),
        headers=_HEADERS | headers,
        ping=_HEARTBEAT_SECONDS,
        ping_message_factory=lambda: ServerSentEvent(comment="still here", sep="\n"),
        send_timeout=_STALLED_SECONDS,
        sep="\n",
    )


def _encoded(event: StreamEvent) -> bytes:
    return ServerSentEvent(data=event.data, event=event.type, id=event.id, sep="\n").encode()
