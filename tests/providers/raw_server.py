"""A server of a few lines that sends exactly the bytes it was given."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class RawServer:
    """What it was asked, and when its client had gone."""

    base_url: str = ""
    requests: list[bytes] = field(default_factory=list[bytes])
    client_left: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def sending(answer: bytes, *, then_waits: bool = False) -> AsyncGenerator[RawServer, None]:
    """Answer every connection with these bytes, then close it, or wait for the client to leave."""
    state = RawServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.requests.append(await _request(reader))
        writer.write(answer)
        await writer.drain()
        if then_waits:
            await reader.read()
        writer.close()
        state.client_left.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    state.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield state
    finally:
        server.close()


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    return await reader.readexactly(length)


def event_stream(*events: bytes, head: bytes = b"") -> bytes:
    """A 200 whose body is these bytes and ends when the connection does."""
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        + head
        + b"\r\n"
        + b"".join(events)
    )
