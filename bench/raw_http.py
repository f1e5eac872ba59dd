"""A minimal keep-alive HTTP/1.1 client on asyncio and httptools, for loopback alone.

The driver shares two cores with what it measures, so it has to be cheap.
"""

import asyncio
from collections import deque
from typing import cast

import httptools
from typing_extensions import override


class Connection(asyncio.Protocol):
    """One connection and the answer that comes over it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.begin()

    def begin(self) -> None:
        """Forget the last answer; the next one is read."""
        self.parser = httptools.HttpResponseParser(self)
        self.pieces: deque[bytes] = deque()
        self.is_done = False
        self.status = 0
        self._waiter: asyncio.Future[None] | None = None
        self._error: BaseException | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # what TCP gives

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if not self.is_done:
            self._error = exc or ConnectionResetError("closed within an answer")
            self._wake()

    @override
    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._error = error
        self._wake()

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self.is_done = True

    async def read(self) -> bytes | None:
        """The next piece of the body, or `None` at its end.

        Raises:
            Exception: the connection broke, or what came is no HTTP.
        """
        while not self.pieces:
            if self._error is not None:
                raise self._error
            if self.is_done:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.pieces.popleft()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Pool:
    """Connections to one port that are used again."""

    def __init__(self, port: int, *, token: str = "sk-stub") -> None:  # noqa: S107 - of a stub
        self._port = port
        self._head = f"host: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n"
        self._idle: list[Connection] = []

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        accept: str = "*/*",
        content_type: str = "application/json",
    ) -> Connection:
        """Send a request; whoever asks reads its answer to the end and calls `release`."""
        connection = await self._connection()
        connection.begin()
        head = (
            f"{method} {path} HTTP/1.1\r\n{self._head}accept: {accept}\r\n"
            f"content-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        if connection.transport is None:
            raise ConnectionResetError("closed before a request")
        connection.transport.write(head.encode() + body)
        return connection

    async def fetch(
        self, method: str, path: str, body: bytes = b"", **how: str
    ) -> tuple[int, bytes]:
        """The status and the whole body of an answer."""
        connection = await self.send(method, path, body, **how)
        try:
            pieces: list[bytes] = []
            while (piece := await connection.read()) is not None:
                pieces.append(piece)
            return connection.status, b"".join(pieces)
        finally:
            self.release(connection)

    def release(self, connection: Connection) -> None:
        """Keep the connection for the next request, or close it where its answer is not read."""
        if connection.is_done and connection.transport and connection.parser.should_keep_alive():
            self._idle.append(connection)
        elif connection.transport:
            connection.transport.close()

    def close(self) -> None:
        """Close what is idle."""
        for connection in self._idle:
            if connection.transport:
                connection.transport.close()
        self._idle.clear()

    async def _connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.transport is not None and not connection.transport.is_closing():
                return connection
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(Connection, "127.0.0.1", self._port)
        return made
