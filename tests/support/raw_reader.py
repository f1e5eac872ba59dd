"""Readers that behave badly, over sockets of their own: those who stall, and those who vanish."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.support.service import TOKEN

_SMALL_BUFFER_BYTES = 4_096


@asynccontextmanager
async def asked(url: str, path: str) -> AsyncGenerator[socket.socket]:
    """A connection that has asked for a stream and read nothing; its buffer holds little."""
    place = urlsplit(url)
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER_BYTES)
        await loop.sock_connect(connection, (place.hostname, place.port))
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Accept: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        await loop.sock_sendall(connection, request.encode())
        yield connection


async def take(connection: socket.socket, at_most_bytes: int) -> bytes:
    """Some bytes, as soon as there are any; none: the other end has closed.

    Raises:
        ConnectionResetError: it was cut.
    """
    return await asyncio.get_running_loop().sock_recv(connection, at_most_bytes)


async def was_cut(connection: socket.socket) -> bool:
    """Read all that is left; whether the connection ended by being cut."""
    try:
        while await take(connection, 65_536):
            pass
    except ConnectionResetError:
        return True
    return False


def vanish(connection: socket.socket) -> None:
    """Close without saying goodbye: whatever comes is answered by a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
