"""A wire between a process and PostgreSQL that can be cut, and can lose the answer to a commit.

A commit of ours is one statement without BEGIN and COMMIT, so the answer to it is the answer to its
`Bind`. The proxy reads as much of the protocol as it takes to know that statement again: the names
under which a statement that writes the journal was prepared.
"""

import asyncio
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_CHUNK = 65_536
_A_COMMIT = b"INSERT INTO turn_events"
_NO_MESSAGE = {80877103, 80877104}
"""Codes that ask for encryption: a start-up message follows."""
_LOST = (OSError, asyncio.IncompleteReadError)


@dataclass(slots=True)
class _Wire:
    """What one connection has said so far, as far as it is of interest."""

    heard: bytearray = field(default_factory=bytearray)
    is_started: bool = False
    commits: set[bytes] = field(default_factory=set[bytes])
    """Names of prepared statements that write the journal."""

    def commits_in(self, data: bytes) -> int:
        """How many commits are asked for in what was said now."""
        self.heard += data
        found = 0
        while (message := self._next()) is not None:
            kind, body = message
            name, _, rest = body.partition(b"\0")
            if kind == b"P" and _A_COMMIT in rest:
                self.commits.add(name)
            found += kind == b"B" and rest.partition(b"\0")[0] in self.commits
        return found

    def _next(self) -> tuple[bytes, bytes] | None:
        start = 1 if self.is_started else 0
        if len(self.heard) < start + 4:
            return None
        (length,) = struct.unpack_from("!I", self.heard, start)
        end = start + length
        if len(self.heard) < end:
            return None
        kind, body = bytes(self.heard[:start]), bytes(self.heard[start + 4 : end])
        del self.heard[:end]
        if not self.is_started:
            self.is_started = struct.unpack_from("!I", body)[0] not in _NO_MESSAGE
        return kind, body


@dataclass(slots=True)
class CommitProxy:
    """Wires to a server whose socket may move; one per process, so that each can be hurt alone."""

    socket: Callable[[], Path | None]
    """Of the server, where it runs."""
    port: int = 0
    to_lose: int = 0
    """Answers to commits that are still to be lost."""
    lost: int = 0
    """Answers that were."""
    _writers: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    def cut(self) -> None:
        """Every connection breaks."""
        for writer in self._writers:
            writer.transport.abort()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first byte to its end."""
        socket = self.socket()
        try:
            if socket is None:
                return
            up_reader, up_writer = await asyncio.open_unix_connection(socket)
        except _LOST:
            return
        finally:
            if socket is None:
                writer.close()
        both = {writer, up_writer}
        self._writers |= both
        is_lost = asyncio.Event()
        pumps = [
            asyncio.create_task(self._there(reader, up_writer, is_lost)),
            asyncio.create_task(self._back(up_reader, writer, is_lost)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._writers -= both
            for each in both:
                each.transport.abort()

    async def _there(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_lost: asyncio.Event
    ) -> None:
        wire = _Wire()
        with suppress(*_LOST):
            while data := await reader.read(_CHUNK):
                if wire.commits_in(data) and self.to_lose > 0:
                    self.to_lose -= 1
                    is_lost.set()
                writer.write(data)
                await writer.drain()

    async def _back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_lost: asyncio.Event
    ) -> None:
        with suppress(*_LOST):
            while data := await reader.read(_CHUNK):
                if is_lost.is_set():
                    self.lost += 1
                    return  # the server has answered, so it has committed; nobody will know
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def commit_proxy(socket: Callable[[], Path | None]) -> AsyncGenerator[CommitProxy]:
    """A proxy on a free loopback port, until the block ends."""
    proxy = CommitProxy(socket)
    server = await asyncio.start_server(proxy.connected, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
