"""Real processes of the service in no time: forks of one that has imported everything.

`python -m tests.support.nursery` reads orders from its standard input, one JSON object a line, and
answers each with a line: `{"environment": …, "log": …}` forks a `turnkeeper serve`, and
`{"ended": pid}` asks for its exit status. A fork begins before any thread, loop or
connection is there, so it is what a new interpreter would be, two seconds of importing later.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from app.entrypoints import processes
from app.settings import load_settings
from tests.support.polling import eventually

_PROJECT = Path(__file__).parents[2]
_READY = re.compile(r"Turnkeeper is ready: (http://[^/]+)/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A process that serves, or has served."""

    pid: int
    log: Path
    _nursery: "Nursery"

    async def url(self) -> str | None:
        """Where it serves; `None` when it ended before it did."""

        async def told() -> str | bool:
            found = _READY.search(self.log.read_text()) if self.log.exists() else None
            return found[1] if found else await self.status() is not None

        found = await eventually(told, timeout_seconds=30)
        return found if isinstance(found, str) else None

    async def status(self) -> int | None:
        """Its exit status, negative for the signal that has ended it; `None` while it lives."""
        status: int | None = (await self._nursery.asked({"ended": self.pid}))["status"]
        return status

    async def ended(self) -> int:
        """The same, once it has one."""

        async def status() -> tuple[int] | None:
            found = await self.status()
            return None if found is None else (found,)

        return (await eventually(status, timeout_seconds=30))[0]

    def terminate(self) -> None:
        """Ask it to stop in order."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


@dataclass(slots=True)
class Nursery:
    """The process whose forks they are."""

    process: asyncio.subprocess.Process
    children: list[Child] = field(default_factory=list[Child])
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def born(self, environment: Mapping[str, str], log: Path) -> Child:
        """A process that begins to serve; what it says goes to `log`."""
        made = await self.asked({"environment": dict(environment), "log": str(log)})
        child = Child(pid=made["pid"], log=log, _nursery=self)
        self.children.append(child)
        return child

    async def asked(self, order: Mapping[str, object]) -> dict[str, Any]:
        """The answer to an order; who is cancelled meanwhile does not leave it to the next one."""
        return await asyncio.shield(self._asked(order))

    async def _asked(self, order: Mapping[str, object]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        async with self._one_at_a_time:
            self.process.stdin.write(orjson.dumps(order) + b"\n")
            answer: dict[str, Any] = orjson.loads(await self.process.stdout.readline())
            return answer


@asynccontextmanager
async def nursery() -> AsyncGenerator[Nursery]:
    """A nursery for the block; whatever of it still lives then is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", __name__),
        cwd=_PROJECT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    found = Nursery(process)
    try:
        yield found
    finally:
        for child in found.children:
            if await child.status() is None:
                child.kill()
        process.kill()
        await process.wait()


def _serve(environment: Mapping[str, str], log: str) -> None:
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    silence = os.open(os.devnull, os.O_RDONLY)
    os.dup2(silence, 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.environ.clear()
    os.environ.update(environment)
    processes.run(processes.serve(load_settings()))


def _ended(pid: int, known: dict[int, int]) -> int | None:
    if pid not in known:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            known[pid] = os.waitstatus_to_exitcode(status)
    return known.get(pid)


def main() -> None:
    """Serve orders until there are no more."""
    known: dict[int, int] = {}
    for line in sys.stdin:
        order = orjson.loads(line)
        if "ended" in order:
            answer: dict[str, int | None] = {"status": _ended(order["ended"], known)}
        elif pid := os.fork():
            answer = {"pid": pid}
        else:
            _serve(order["environment"], order["log"])
            os._exit(0)
        sys.stdout.write(orjson.dumps(answer).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
