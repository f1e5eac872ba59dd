"""An ASGI app on a socket, from an address to the last answer."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

_ANSWERS_WITHIN_SECONDS = 5
STALLED_SECONDS = 60.0
_SEND_BUFFER_BYTES = 256 * 1024
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  to show, not to bind


class AddressTakenError(Exception):
    """The address to listen on cannot be had."""


class AppNotStartedError(Exception):
    """The application did not start; the log lines before this say why."""

    @override
    def __str__(self) -> str:
        return "the application did not start; the lines above say why"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An address that is ours already, while nobody is answered yet.

    It is taken before the database is started, so that a port in use is told at once.
    """

    socket: socket.socket

    @classmethod
    @contextmanager
    def bind(
        cls, host: str, port: int, *, variable: str, stalled_seconds: float = STALLED_SECONDS
    ) -> Generator[Self]:
        """Takes an address; port 0 takes any free one.

        Args:
            host: its name or number.
            port: its port.
            variable: sets another, for the error.
            stalled_seconds: a connection whose other end takes nothing for so long, or has
                vanished, is cut.

        Raises:
            AddressTakenError: it cannot be had; names the variable that sets another.
        """
        with contextlib.ExitStack() as closing:
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
                # With its protocol named, or asyncio does not turn Nagle's algorithm off.
                bound = closing.enter_context(socket.socket(*found[:3]))
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                _bound_what_waits(bound, stalled_seconds)
                bound.bind(found[4])
            except OSError as error:
                message = (
                    f"cannot listen on {host}, port {port} ({error.strerror}): "
                    f"set {variable} or TURNKEEPER_HOST"
                )
                raise AddressTakenError(message) from error
            yield cls(socket=bound)

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        address: tuple[str, int] = self.socket.getsockname()[:2]
        host, port = _WILDCARDS.get(address[0], address[0]), address[1]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bound_what_waits(listening: socket.socket, stalled_seconds: float) -> None:
    """Limits of every connection that is accepted here, in bytes and in time.

    Only the kernel knows whether the other end takes anything: to the process one that reads slowly
    looks like one that has stopped, and closing a connection that takes nothing never ends.
    """
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        millis = int(stalled_seconds * 1000)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, millis)


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process is more than its server."""

    def __init__(self, app: ASGIApp, listener: Listener) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_ANSWERS_WITHIN_SECONDS,
            )
        )
        self._listener = listener
        self._began_or_ended = asyncio.Event()

    async def serve_until(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set; sets it when the app itself cannot start."""
        watching = asyncio.create_task(self._exit_at(stop))
        try:
            await self.serve(sockets=[self._listener.socket])
        finally:
            stop.set()
            self._began_or_ended.set()
            await watching

    def require_started(self) -> None:
        """Raises AppNotStartedError when it ended without ever having listened."""
        if not self.started:
            raise AppNotStartedError

    async def is_ready(self) -> bool:
        """Waits until it listens; False when it ended instead."""
        await self._began_or_ended.wait()
        return self.started

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit:  # uvicorn ends the process when the app's lifespan fails
            self.should_exit = True
        self._began_or_ended.set()

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        yield

    async def _exit_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.should_exit = True
