"""Several processes over one PostgreSQL of their own, to be killed, stopped and cut off at will."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx

from app.store import embedded
from app.store.embedded import EmbeddedServer
from tests.support.commit_proxy import CommitProxy, commit_proxy
from tests.support.polling import eventually
from tests.support.service import TOKEN

_PROJECT = Path(__file__).parents[2]
_COMMAND = Path(sys.executable).with_name("turnkeeper")
_SOCKET = ".s.PGSQL.5432"
_STARTS_WITHIN_SECONDS = 60

Kind = Literal["serve", "worker"]


@dataclass(slots=True, kw_only=True)
class Member:
    """A process of the fleet; a killed one is started again at the same address."""

    kind: Kind
    port: int
    proxy: CommitProxy
    environment: dict[str, str]
    log: Path
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                _COMMAND, self.kind, cwd=_PROJECT, stdout=log, stderr=log, env=self.environment
            )

    async def kill(self) -> None:
        """As a power cut would."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()

    async def terminate(self) -> int:
        """Ask it to stop in order; its exit status."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(_STARTS_WITHIN_SECONDS):
            return await self.process.wait()

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def ready(self) -> None:
        """Until it answers; one that ended because the database was away is started again."""
        async with httpx.AsyncClient(trust_env=False) as client:
            await eventually(lambda: self._answers(client), timeout_seconds=_STARTS_WITHIN_SECONDS)

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        await self.ensure_started()
        with suppress(httpx.HTTPError):
            return (await client.get(f"{self.url}/livez", timeout=2)).is_success
        await asyncio.sleep(0.1)
        return False

    async def ensure_started(self) -> None:
        """As a supervisor would."""
        if self.process is None or self.process.returncode is not None:
            await self.start()


@dataclass(slots=True, kw_only=True)
class Fleet:
    """The processes, and the server that they share."""

    server: EmbeddedServer
    members: list[Member] = field(default_factory=list[Member])

    @property
    def dsn(self) -> str:
        """Past the proxies."""
        return self.server.dsn

    @property
    def apis(self) -> list[Member]:
        return [member for member in self.members if member.kind == "serve"]

    @property
    def workers(self) -> list[Member]:
        return [member for member in self.members if member.kind == "worker"]

    async def restart_database(self, *, at_once: bool) -> None:
        """Stop the server, in order or as a crash would, and start it again."""
        await asyncio.to_thread(self._restart, "immediate" if at_once else "fast")

    def _restart(self, mode: str) -> None:
        cluster = self.server.cluster
        program = str(cluster.programs / "pg_ctl")
        cluster.account.run(
            [program, "-w", "-s", "-D", ".", "stop", "-m", mode],
            cwd=cluster.folder,
            timeout_seconds=60,
        )
        cluster.ensure_running()

    async def ready(self) -> None:
        for member in self.members:
            await member.ready()


@asynccontextmanager
async def fleet(
    folder: Path,
    *,
    apis: int,
    workers: int,
    environment: dict[str, str],
) -> AsyncGenerator[Fleet]:
    """So many processes that answer; what is left of them at the end of the block is killed."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(embedded.running(folder, fsync=False))
        found = Fleet(server=server)

        def address() -> Path | None:
            at = server.cluster.socket_folder()
            return None if at is None else at / _SOCKET

        kinds: list[Kind] = ["serve"] * apis + ["worker"] * workers  # type: ignore[assignment]
        for number, kind in enumerate(kinds):
            proxy = await stack.enter_async_context(commit_proxy(address))
            port = _free_port()
            found.members.append(
                Member(
                    kind=kind,
                    port=port,
                    proxy=proxy,
                    environment=_environment(kind, port, proxy, folder, environment),
                    log=folder / f"{kind}-{number}.log",
                )
            )
        try:
            await found.members[0].ready()  # which migrates
            await found.ready()
            yield found
        finally:
            for member in found.members:
                member.thaw()
                await member.kill()


def _environment(
    kind: Kind, port: int, proxy: CommitProxy, folder: Path, more: dict[str, str]
) -> dict[str, str]:
    ours = ("TURNKEEPER_", "OPENAI_", "DATABASE_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    roles = {"serve": "TURNKEEPER_PORT", "worker": "TURNKEEPER_WORKER_HEALTH_PORT"}
    own = {
        "DATABASE_URL": f"postgresql://turnkeeper@127.0.0.1:{proxy.port}/turnkeeper",
        "TURNKEEPER_DATA_DIR": str(folder),
        "TURNKEEPER_TOKEN": TOKEN,
        "TURNKEEPER_LOG_FORMAT": "json",
        roles[kind]: str(port),
    }
    if kind == "serve":
        own["TURNKEEPER_WORKER_CONCURRENCY"] = "0"
    return plain | more | own


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
