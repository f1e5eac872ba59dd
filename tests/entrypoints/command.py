"""The command `turnkeeper` as its own process, to be asked, stopped and killed."""

import os
import re
import signal
import subprocess
import sys
from types import TracebackType
from typing import Self

_FOREIGN = re.compile(r"TURNKEEPER_|OPENAI_|DATABASE_URL|PYTHONDONTWRITEBYTECODE")


class Command:
    """`turnkeeper` with the given arguments, in an environment that holds no other settings."""

    program = "from app.entrypoints.cli import main; main()"

    def __init__(self, *arguments: str, **environment: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
        self._process = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-c", self.program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**clean, **environment},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.kill()

    def ready_url(self) -> str:
        """Waits for the line that says the process is ready; the URL in it."""
        assert self._process.stdout is not None
        seen: list[str] = []
        for line in self._process.stdout:
            seen.append(line)
            if " is ready: " in line:
                return line.rpartition(" ")[2].strip()
        raise AssertionError("".join(seen))

    def ended(self) -> tuple[int, str]:
        """Waits for its end; its status and what it printed since the last look."""
        printed, _ = self._process.communicate(timeout=60)
        return self._process.returncode, printed

    def stop(self) -> int:
        """Asks it to stop in order; its exit status."""
        self.interrupt()
        return self.ended()[0]

    def interrupt(self) -> None:
        """Asks it to stop in order."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        if self._process.poll() is None:
            self._process.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait()
