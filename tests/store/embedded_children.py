"""Processes that use an embedded server, to be killed."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

_CHILD = """
import asyncio, pathlib, sys
from app.store import embedded

async def main():
    server = await embedded.start(pathlib.Path(sys.argv[1]), fsync=False)
    print(server.dsn, flush=True)
    sys.stdin.readline()
    await server.stop()

asyncio.run(main())
"""


class Child:
    """A process that starts the server of a folder and holds it until told to stop."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own code
            [sys.executable, "-c", _CHILD, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
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

    def dsn(self) -> str:
        """Waits until the child's server is ready."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def stop(self) -> int:
        """Stops in order; the process's exit status."""
        self._process.communicate("\n", timeout=30)
        return self._process.returncode

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


def postmaster_pid(data_dir: Path) -> int:
    return int((data_dir / "postgres/postmaster.pid").read_text().split()[0])


def runs(pid: int) -> bool:
    """Whether the process works; one that is dead and only not yet buried does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def drafts(data_dir: Path) -> list[Path]:
    """What an `initdb` has written so far, before the cluster gets its name."""
    return list(data_dir.glob("postgres.new-*/*"))


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def stranger(uid: int) -> subprocess.Popen[bytes]:
    """A process of that user which is no server."""
    return subprocess.Popen(["/bin/sleep", "60"], user=uid, cwd="/")


def program_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/exe").readlink()


def user_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def mode_of(path: Path) -> int | None:
    """Who may do what with a path; None when there is no such path."""
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else None


def closed_folder(path: Path) -> Path:
    """A folder that nobody but root can enter, not even its owner."""
    path.mkdir(mode=0o600)
    return path


@contextmanager
def changed(path: Path, text: str) -> Generator[None]:
    """The file with another text, for a while."""
    before = path.read_text()
    path.write_text(text.format(before=before))
    try:
        yield
    finally:
        path.write_text(before)
