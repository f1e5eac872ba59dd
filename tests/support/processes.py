"""`turnkeeper serve` as real processes, to be killed and started again."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support import story
from tests.support.service import TOKEN, SignedIn, signed_in

_PROJECT = Path(__file__).parents[2]
_COMMAND = Path(sys.executable).with_name("turnkeeper")
_STARTS_WITHIN_SECONDS = 30
_READY = re.compile(r"Turnkeeper is ready: (http://[^/]+)/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingProcess(SignedIn):
    """A process that serves, and a signed-in client of it."""

    process: asyncio.subprocess.Process

    async def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        await self.process.wait()

    def terminate(self) -> None:
        """Ask it to stop in order."""
        self.process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Its exit status, once it has one."""
        async with asyncio.timeout(_STARTS_WITHIN_SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def serving(
    dsn: str,
    ledger: story.Ledger,
    provider_url: str,
    *,
    lease_seconds: float = 1.0,
    agents: str = f"{story.__name__}:agents",
    **more: str,
) -> AsyncGenerator[ServingProcess]:
    """A process with the story's agent; what is left of it at the end of the block is killed.

    Args:
        dsn: its database.
        ledger: where its tools write, and wait behind the gate.
        provider_url: of the OpenAI-compatible provider.
        lease_seconds: how long the turns of a killed process wait; at least 1.
        agents: as `TURNKEEPER_AGENTS` names them.
        more: of its environment.
    """
    process = await asyncio.create_subprocess_exec(
        _COMMAND,
        "serve",
        cwd=_PROJECT,
        stdout=asyncio.subprocess.PIPE,
        env=_unset()
        | {
            "DATABASE_URL": dsn,
            "OPENAI_BASE_URL": provider_url,
            "TURNKEEPER_AGENTS": agents,
            "TURNKEEPER_CLAIM_LEASE_SECONDS": f"{lease_seconds:g}",
            "TURNKEEPER_CLAIM_RENEW_SECONDS": f"{lease_seconds / 3:g}",
            "TURNKEEPER_CLAIM_POLL_SECONDS": "0.2",
            "TURNKEEPER_DATA_DIR": str(ledger.folder),
            "TURNKEEPER_PORT": "0",
            "TURNKEEPER_TOKEN": TOKEN,
            story.FOLDER_VARIABLE: str(ledger.folder),
            **more,
        },
    )
    try:
        url = await _ready(process)
        async with signed_in(url) as client:
            yield ServingProcess(url=url, client=client, process=process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _unset() -> dict[str, str]:
    """The environment without what would configure the service."""
    ours = ("TURNKEEPER_", "OPENAI_", "DATABASE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


async def _ready(process: asyncio.subprocess.Process) -> str:
    """The URL that the start prints."""
    assert process.stdout is not None
    async with asyncio.timeout(_STARTS_WITHIN_SECONDS):
        async for line in process.stdout:
            if found := _READY.match(line.decode()):
                return found[1]
    message = f"the process ended with {await process.wait()} before it was ready"
    raise AssertionError(message)
