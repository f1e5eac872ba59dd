"""The one HTTP client towards providers: every wait bounded, every connection closed in time.

The environment is not trusted: no proxy from `HTTPS_PROXY`, no password from `.netrc`. Whoever
needs a proxy names it, so that a key never travels through a host nobody chose (ADR 0006).
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeVar

import httpx

from app.providers.aiohttp_transport import AiohttpTransport
from app.providers.carrying import Answered, Carrier, OverHttpx, Sending

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
    """httpx's client, with a way past what a model call has no use for: its `carrier`.

    Cookies, redirects, authentication in rounds and hooks cost more than sending itself.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        super().__init__(transport=transport, trust_env=False)
        self.carrier: Carrier = (
            transport if isinstance(transport, AiohttpTransport) else OverHttpx(transport)
        )


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

    _answered: Answered
    _pieces: AsyncGenerator[bytes, None]
    _clock: Clock

    @property
    def status(self) -> int:
        return self._answered.status

    @property
    def headers(self) -> httpx.Headers:
        return httpx.Headers([*self._answered.raw_headers])

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
    client: HttpClient, request: Sending, timeouts: Timeouts
) -> AsyncGenerator[Reply, None]:
    """Send the request and hand out the reply; leaving closes the connection, or gives it back.

    Raises:
        ProviderTimeoutError: No answer came in time.
        httpx.HTTPError: The request could not be sent, or the connection broke.
    """
    clock = Clock.started(timeouts)
    answered = await clock.bounded(client.carrier.carry(request))
    pieces = answered.pieces()
    try:
        yield Reply(answered, pieces, clock)
    finally:
        await pieces.aclose()
        await answered.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where requests go."""

    url: str
    authorization: Mapping[str, str] = field(repr=False)
    """A name and a password that stood in it, as a header; mostly nothing."""


def address_of(url: httpx.URL) -> Address:
    """The address as it is asked."""
    if not url.userinfo:
        return Address(url=str(url), authorization={})
    signed = httpx.Request("POST", url)
    next(httpx.BasicAuth(url.username, url.password).auth_flow(signed))
    return Address(
        url=str(url.copy_with(userinfo=b"")),
        authorization={"authorization": signed.headers["authorization"]},
    )


def post(
    address: Address, headers: Mapping[str, str], content: bytes, timeouts: Timeouts
) -> Sending:
    """A request for `exchange`, which bounds all waiting but that for a connection."""
    return Sending(
        address=address.url,
        headers={**_ALWAYS, **headers, **address.authorization},
        content=content,
        connect_seconds=timeouts.connect_seconds,
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
