"""A server of a few lines that sends exactly the bytes it was given."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class RawServer:
    """What it was asked, and when its client had gone."""

    base_url: str = ""
    requests: list[bytes] = field(default_factory=list[bytes])
    heads: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0
    client_left: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def sending(answer: bytes, *, then_waits: bool = False) -> AsyncGenerator[RawServer, None]:
    """Answer every connection with these bytes, then close it, or wait for the client to leave."""
    state = RawServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.connections += 1
        await _take(state, reader)
        writer.write(answer)
        await writer.drain()
        if then_waits:
            await reader.read()
        writer.close()
        state.client_left.set()

    async with _serving(serve, state):
        yield state


@asynccontextmanager
async def staying(answer: bytes) -> AsyncGenerator[RawServer, None]:
    """Answer every request of a connection with these bytes, until its client leaves."""
    state = RawServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.connections += 1
        with suppress(asyncio.IncompleteReadError):
            while True:
                await _take(state, reader)
                writer.write(answer)
        writer.close()
        state.client_left.set()

    async with _serving(serve, state):
        yield state


@asynccontextmanager
async def closing_idle_ones(answer: bytes) -> AsyncGenerator[RawServer, None]:
    """Answer one request of a connection, and hang up on the next one without a word."""
    state = RawServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.connections += 1
        with suppress(asyncio.IncompleteReadError):
            await _take(state, reader)
            writer.write(answer)
            await _take(state, reader)
        writer.close()
        state.client_left.set()

    async with _serving(serve, state):
        yield state


@asynccontextmanager
async def _serving(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    state: RawServer,
) -> AsyncGenerator[None, None]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    state.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield
    finally:
        server.close()


async def _take(state: RawServer, reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    state.heads.append(head)
    state.requests.append(await reader.readexactly(length))


def whole(*events: bytes, head: bytes = b"") -> bytes:
    """A 200 whose body is these bytes, so many and no more."""
    body = b"".join(events)
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n%b\r\n%b" % (len(body), head, body)


def event_stream(*events: bytes, head: bytes = b"") -> bytes:
    """A 200 whose body is these bytes and ends when the connection does."""
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        + head
        + b"\r\n"
        + b"".join(events)
    )
