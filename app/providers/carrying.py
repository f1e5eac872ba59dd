"""What goes out to a provider and what comes back, as plain values, whatever carries it.

httpx's requests and responses parse, copy and measure for any use there is; a model call has one.
Its transports still fit (`OverHttpx`), and its errors are everybody's (ADR 0022).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import httpx
from typing_extensions import override


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A request, whole."""

    method: str = "POST"
    address: str
    """Without a name or a password."""
    headers: Mapping[str, str] = field(repr=False)
    """But for `Host` and `Content-Length`, which whoever carries it adds."""
    content: bytes = field(repr=False)
    connect_seconds: float | None
    """Until a connection stands, the wait for a free one included; `None` does not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer whose head has come and whose body is still coming."""

    status: int
    raw_headers: Sequence[tuple[bytes, bytes]]
    is_packed: bool
    """Whether the body has to be unpacked."""
    body: AsyncGenerator[bytes, None]
    """As it comes. Reading it raises what is an `httpx.TransportError`."""
    close: Callable[[], Awaitable[None]]
    """Closes the connection where the body has not been read to its end."""

    def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body, unpacked where it came packed."""
        return _unpacked(self.as_httpx()) if self.is_packed else self.body

    def as_httpx(self, request: httpx.Request | None = None) -> httpx.Response:
        """The answer for those who want one of httpx's, who read and close that one then."""
        return httpx.Response(
            self.status, headers=[*self.raw_headers], stream=_Stream(self), request=request
        )


class _Stream(httpx.AsyncByteStream):
    def __init__(self, answered: Answered) -> None:
        self._answered = answered

    @override
    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._answered.body

    @override
    async def aclose(self) -> None:
        await self._answered.close()


class Carrier(Protocol):
    """A way to a provider."""

    async def carry(self, sending: Sending) -> Answered:
        """Send the request; the caller reads the answer's body and closes it.

        Raises:
            httpx.TransportError: it could not be sent, or no answer came.
        """
        ...


@dataclass(frozen=True, slots=True)
class OverHttpx:
    """Any transport of httpx as a `Carrier`."""

    transport: httpx.AsyncBaseTransport

    async def carry(self, sending: Sending) -> Answered:
        """Send the request, as `Carrier` says."""
        response = await self.transport.handle_async_request(
            httpx.Request(
                sending.method,
                sending.address,
                headers=sending.headers,
                content=sending.content,
                extensions={"timeout": {"connect": sending.connect_seconds}},
            )
        )
        return Answered(
            status=response.status_code,
            raw_headers=response.headers.raw,
            is_packed=False,  # any more
            body=_unpacked(response),
            close=response.aclose,
        )


async def _unpacked(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    async for piece in response.aiter_bytes():
        yield piece
