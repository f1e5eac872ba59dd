"""The server of the service, which ends as soon as it may.

uvicorn looks ten times a second whether it should end, and then lets a tenth of a second pass; with
hundreds of services and providers in the tests that is a minute in which nothing happens.
"""

import asyncio
import socket
from contextlib import suppress

from typing_extensions import override

from app.entrypoints.serving import Server

_LOOK_SECONDS = 0.002


class PromptServer(Server):
    """Ends in order like the real one: no new connections, then the open answers."""

    @override
    async def serve_until(self, stop: asyncio.Event) -> None:
        self._stop = stop
        await super().serve_until(stop)

    @override
    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stop.wait()

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for each in sockets or []:
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._answered(), self.config.timeout_graceful_shutdown)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()

    async def _answered(self) -> None:
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)
