"""The one HTTP client towards providers: every wait bounded, every connection closed in time.

The environment is not trusted: no proxy from `HTTPS_PROXY`, no password from `.netrc`. Whoever
needs a proxy names it, so that a key never travels through a host nobody chose (ADR 0006).
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

import httpx

from app.providers.aiohttp_transport import AiohttpTransport

MAX_ERROR_BYTES = 256 * 1024
"""How much of an error's body is read."""

_LINGER_SECONDS = 1.0
_ALWAYS = {
    "accept": "text/event-stream",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "turnkeeper",
}

_T = TypeVar("_T")


class HttpClient(httpx.AsyncClient):
    """httpx's client, with a way past what a model call has no use for.

    Cookies, redirects, authentication in rounds and hooks cost more than sending itself.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        super().__init__(transport=transport, trust_env=False)
        self._carrier = transport

    async def carry(self, request: httpx.Request) -> httpx.Response:
        """Send the request as it is; the caller reads the response's stream and closes it.

        Raises:
            httpx.TransportError: it could not be sent, or no answer came.
        """
        return await self._carrier.handle_async_request(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long to wait for a provider, in seconds; every figure more than 0."""

    connect_seconds: float = 10.0
    """Until the connection stands, TLS included; also for a free place in the pool."""
    first_byte_seconds: float = 120.0
    """From sending the request to the first byte of the answer's body."""
    idle_seconds: float = 60.0
    """Between two pieces of an answer."""
    total_seconds: float = 900.0
    """From sending the request to the last byte of the answer."""


class ProviderTimeoutError(Exception):
    """The provider kept silent for too long."""


class FirstByteTimeout(ProviderTimeoutError):  # noqa: N818 - the name is shown as exception_type
    """No byte of an answer came in time."""


class IdleTimeout(ProviderTimeoutError):  # noqa: N818
    """The answer stopped coming."""


class TotalTimeout(ProviderTimeoutError):  # noqa: N818
    """The answer took too long as a whole."""


def new_client(
    *,
    max_connections: int = 1_000,
    proxy: str | None = None,
    verify: ssl.SSLContext | bool = True,
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpClient:
    """A client to share between all providers and calls of one process; the caller closes it.

    It follows no redirects: a key must not be carried to another host.
    """
    return HttpClient(
        transport or AiohttpTransport(max_connections=max_connections, verify=verify, proxy=proxy)
    )


@dataclass(slots=True)
class Clock:
    """Bounds the waits of one call."""

    timeouts: Timeouts
    started_at: float
    idle_seconds: float
    has_begun: bool = False
    """Whether something of the answer has come."""

    @classmethod
    def started(cls, timeouts: Timeouts) -> Self:
        """A clock that runs from now on."""
        return cls(timeouts, started_at=_now(), idle_seconds=timeouts.idle_seconds)

    async def bounded(self, waiting: Awaitable[_T]) -> _T:
        """Bound one wait by whichever limit comes first.

        Raises:
            ProviderTimeoutError: It took too long.
        """
        due, error = self._due()
        try:
            async with asyncio.timeout_at(due):
                return await waiting
        except TimeoutError as timeout:
            raise error(error.__doc__) from timeout

    def _due(self) -> tuple[float, type[ProviderTimeoutError]]:
        total = self.started_at + self.timeouts.total_seconds
        if self.has_begun:
            due = _now() + self.idle_seconds
        else:
            due = self.started_at + self.timeouts.first_byte_seconds
        if total <= due:
            return total, TotalTimeout
        return due, IdleTimeout if self.has_begun else FirstByteTimeout


@dataclass(slots=True)
class Reply:
    """An answer whose head has come and whose body is still coming."""

    status: int
    headers: httpx.Headers
    _pieces: AsyncIterator[bytes]
    _clock: Clock

    async def next_piece(self) -> bytes | None:
        """More of the body, decoded, as it comes; `None` at its end.

        Raises:
            ProviderTimeoutError: Nothing came for too long.
            httpx.HTTPError: The connection broke.
        """
        piece = await self._clock.bounded(anext(self._pieces, None))
        self._clock.has_begun = self._clock.has_begun or bool(piece)
        return piece

    async def start_of_body(self, limit: int = MAX_ERROR_BYTES) -> bytes:
        """The body, cut off behind `limit` bytes; what was read when the connection broke."""
        body = bytearray()
        with contextlib.suppress(httpx.HTTPError, ProviderTimeoutError):
            while len(body) < limit and (piece := await self.next_piece()) is not None:
                body += piece
        return bytes(body[:limit])

    def expect_the_end(self) -> None:
        """Wait no longer than a second for each further piece: the answer itself is complete.

        Reading up to the end lets the connection serve another call.
        """
        self._clock.idle_seconds = min(self._clock.idle_seconds, _LINGER_SECONDS)


@contextlib.asynccontextmanager
async def exchange(
    client: HttpClient, request: httpx.Request, timeouts: Timeouts
) -> AsyncGenerator[Reply, None]:
    """Send the request and hand out the reply; leaving closes the connection, or gives it back.

    Raises:
        ProviderTimeoutError: No answer came in time.
        httpx.HTTPError: The request could not be sent, or the connection broke.
    """
    clock = Clock.started(timeouts)
    response = await clock.bounded(client.carry(request))
    pieces = _pieces_of(response)
    try:
        yield Reply(response.status_code, response.headers, pieces, clock)
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
        await response.aclose()


def _pieces_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it is, past httpx where there is nothing to unpack: nearly always."""
    if "content-encoding" not in response.headers and isinstance(
        response.stream, httpx.AsyncByteStream
    ):
        return aiter(response.stream)
    return response.aiter_bytes()


def post(
    address: httpx.URL, headers: Mapping[str, str], content: bytes, timeouts: Timeouts
) -> httpx.Request:
    """A request for `exchange`, which bounds all waiting but that for a connection.

    A name and a password in the address go out as its `Authorization`.
    """
    request = httpx.Request(
        "POST",
        address.copy_with(userinfo=b"") if address.userinfo else address,
        headers={**_ALWAYS, **headers},
        stream=httpx.ByteStream(content),  # as `content` it would be looked into
        extensions={"timeout": {"connect": timeouts.connect_seconds}},
    )
    if address.userinfo:
        next(httpx.BasicAuth(address.username, address.password).auth_flow(request))
    return request


def _now() -> float:
    return asyncio.get_running_loop().time()
