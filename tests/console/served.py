"""The service in a process of its own, so that it can be killed and started again."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.console import agents

_READY = re.compile(r"ready: (http://\S+#login=\S+)")
_WITHIN_SECONDS = 30
_LAST_LINES = 60
_PROJECT = Path(__file__).parents[2]
_CHANGED = ("TURNKEEPER_", "OPENAI_", "DATABASE_URL")


class ServedService:
    """`turnkeeper serve` over a database that exists already."""

    def __init__(self, dsn: str, folder: Path, provider_url: str) -> None:
        self.url = ""
        self.gates = folder / "gates"
        """Where a gated tool looks for a file of its product's name before it ends."""
        self.gates.mkdir()
        self._log = folder / "log.txt"
        self._port = "0"
        self._process: subprocess.Popen[bytes] | None = None
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_CHANGED)}
        self._environment = inherited | {
            "DATABASE_URL": dsn,
            "OPENAI_BASE_URL": provider_url,
            "TURNKEEPER_MODEL": "demo-at-a-faster-pace",
            "TURNKEEPER_AGENTS": f"{agents.__name__}:agents",
            agents.GATES: str(self.gates),
            "TURNKEEPER_DATA_DIR": str(folder / "data"),
            # A worker's turns are taken over when its claim has run out: a test cannot wait long.
            "TURNKEEPER_CLAIM_LEASE_SECONDS": "3",
            "TURNKEEPER_CLAIM_RENEW_SECONDS": "0.5",
            "TURNKEEPER_CLAIM_POLL_SECONDS": "0.2",
        }

    async def start(self) -> None:
        """Starts it, on the same port after the first time, and waits until it is ready."""
        command = [str(Path(sys.executable).with_name("turnkeeper")), "serve", "--port", self._port]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program, once
                command, cwd=_PROJECT, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )
        async with asyncio.timeout(_WITHIN_SECONDS):
            while not (ready := _READY.search(self._log.read_text("utf-8"))):
                assert self._process.poll() is None, self._log.read_text("utf-8")
                await asyncio.sleep(0.02)  # between two looks
        self.url = ready[1]
        self._port = re.findall(r":(\d+)/", self.url)[0]

    def said_last(self) -> str:
        """The end of its log."""
        return "\n".join(self._log.read_text("utf-8").splitlines()[-_LAST_LINES:])

    async def kill(self) -> None:
        """SIGKILL: nothing is tidied up."""
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
