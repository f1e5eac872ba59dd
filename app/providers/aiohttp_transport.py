"""httpx's way to the network, by aiohttp: its parser and its buffers cost a third (ADR 0022).

Its errors are httpx's, and whoever brings a request of httpx finds the transport it knows. Below it
a session of aiohttp holds the connections. What aiohttp would do by itself is switched off: it
follows nothing, unpacks nothing, keeps no cookies, believes no environment, and has no time limit
but the one until a connection stands; `exchange` bounds the rest.

The case that surprised us: a server may close an idle connection at the very moment at which a
request goes out on it. That is no failure of the model, so the request is sent once more on another
connection; only when that was a new one is there anything to tell.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial

import aiohttp
import httpx
from multidict import CIMultiDict
from typing_extensions import override
from yarl import URL

from app.providers.carrying import Answered, Sending

_LONGEST_HEADER_BYTES = 64 * 1024
_IDLE_SECONDS = 4.0
"""How long an idle connection is kept: uvicorn (vLLM, SGLang, LiteLLM) closes its own after 5 s."""
_STALE_WITHIN_SECONDS = 2.0
"""A connection that was closed before the request came says so by then. Later the server may have
worked for it, and has failed."""
_HUNG_UP = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends the requests of one event loop; `aclose` closes the connections.

    Raises:
        httpx.TransportError: from sending and from reading, whatever aiohttp meets. The text of an
            address that cannot be asked is not repeated: it may hold a password.
    """

    def __init__(
        self, *, max_connections: int, verify: ssl.SSLContext | bool, proxy: str | None
    ) -> None:
        self._max_connections = max_connections
        self._proxy = proxy
        self._verify = verify
        self._session: aiohttp.ClientSession | None = None

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """How servers are believed to be who they say; made when it is needed, since it is slow."""
        return httpx.create_ssl_context(self._verify, trust_env=False)

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answered = await self.carry(
            Sending(
                method=request.method,
                address=str(request.url),
                headers=CIMultiDict(request.headers.multi_items()),
                content=await request.aread(),
                connect_seconds=request.extensions.get("timeout", {}).get("connect"),
            )
        )
        return answered.as_httpx(request)

    async def carry(self, sending: Sending) -> Answered:
        """Send the request, as `Carrier` says."""
        with _as_httpx(sending):
            response = await self._answered(sending)
        return Answered(
            status=response.status,
            raw_headers=response.raw_headers,
            is_packed="content-encoding" in response.headers,
            body=_body_of(response, sending),
            close=partial(_close, response),
        )

    async def _answered(self, sending: Sending) -> aiohttp.ClientResponse:
        """Each turn of the loop uses up an idle connection that is no more, so it ends."""
        session = self._session or self._opened()
        tries = 0
        while True:
            tries += 1
            way = _Way()
            _way.set(way)
            began = _now()
            try:
                return await _sent(session, sending)
            except aiohttp.ClientConnectorError:
                raise  # there was no connection
            except _HUNG_UP as error:
                is_late = _now() - began > _STALE_WITHIN_SECONDS
                if way.is_new or is_late or tries > self._max_connections:
                    raise
                _forget_frames_of(error)

    @override
    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """The session, made where its event loop runs."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._max_connections,
                keepalive_timeout=_IDLE_SECONDS,
                ssl=self.tls,
                socket_factory=_new_socket,
            ),
            proxy=self._proxy,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=_LONGEST_HEADER_BYTES,
            max_field_size=_LONGEST_HEADER_BYTES,
        )
        return self._session


@dataclass(slots=True)
class _Way:
    """The connection that a request goes by."""

    is_new: bool = False
    """A socket was made for it; otherwise it has served before, and was idle."""


_way: ContextVar[_Way] = ContextVar("_way")
"""Of the request that is being sent in this context."""


def _new_socket(address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    _way.get().is_new = True
    family, kind, protocol, _, _ = address
    return socket.socket(family, kind, protocol)


async def _sent(session: aiohttp.ClientSession, sending: Sending) -> aiohttp.ClientResponse:
    return await session.request(
        sending.method,
        URL(sending.address, encoded=True),
        headers=sending.headers,
        data=sending.content,
        allow_redirects=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=sending.connect_seconds),
    )


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _body_of(
    response: aiohttp.ClientResponse, sending: Sending
) -> AsyncGenerator[bytes, None]:
    with _as_httpx(sending):
        while piece := await response.content.readany():
            yield piece


async def _close(response: aiohttp.ClientResponse) -> None:
    response.close()  # which is nothing where the body was read to its end


@contextmanager
def _as_httpx(sending: Sending) -> Generator[None, None, None]:
    """Errors are httpx's, and know whom the request went to."""
    try:
        yield
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        raise httpx.UnsupportedProtocol(
            "the address is none that can be asked", request=_request_of(sending)
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        _forget_frames_of(error)
        raise _kind_of(error)(
            str(error) or type(error).__name__, request=_request_of(sending)
        ) from error


def _forget_frames_of(error: BaseException | None) -> None:
    """An error that aiohttp keeps holds the frames it came through, and they hold the request.

    Such a ring would keep a whole history in memory until cycles are looked for (ADR 0036).
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _request_of(sending: Sending) -> httpx.Request:
    return httpx.Request(sending.method, sending.address)


def _kind_of(error: Exception) -> type[httpx.TransportError]:
    return next((kind for known, kind in _KINDS if isinstance(error, known)), httpx.NetworkError)


_KINDS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ServerTimeoutError, httpx.ConnectTimeout),  # no other time is limited
    (aiohttp.ClientProxyConnectionError, httpx.ProxyError),
    (aiohttp.ClientHttpProxyError, httpx.ProxyError),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ServerFingerprintMismatch, httpx.ConnectError),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),  # what came is no HTTP
    (OSError, httpx.ReadError),
    (ValueError, httpx.LocalProtocolError),  # a header that cannot be sent
)
"""The first that fits counts."""
