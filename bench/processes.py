"""Processes of a benchmark: started in a session of their own, measured, and ended by their ids."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

LOOPBACK = "127.0.0.1"
_SIGNALS = ((signal.SIGTERM, 8.0), (signal.SIGKILL, 3.0))


def free_port() -> int:
    """A port of the loopback address that nobody listens on now."""
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str],
    *,
    log: Path,
    port: int,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: str | None = None,
    seconds: float = 60,
) -> Generator[int]:
    """The process id of `command`, which listens on `port`; it is ended with the context.

    Raises:
        RuntimeError: it has ended, or does not listen after `seconds`.
    """
    with log.open("wb") as out:
        process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - a command of ours
            command,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            stdout=out,
            stderr=out,
            start_new_session=True,
            user=user,
            group=user,
        )
        try:
            _wait_for(port, process, seconds, log)
            yield process.pid
        finally:
            _end(process)


def _wait_for(port: int, process: subprocess.Popen[bytes], seconds: float, log: Path) -> None:
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at and process.poll() is None:
        with socket.socket() as tried:
            tried.settimeout(0.3)
            if tried.connect_ex((LOOPBACK, port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} did not start: {log.read_text()[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and what it has started: they share a process group."""
    for number, seconds in _SIGNALS:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # children that outlived it
    process.wait()


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its children, living and ended."""
    total = 0.0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        times = root.cpu_times()
        total += times.children_user + times.children_system
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                own = process.cpu_times()
                total += own.user + own.system
    return total


def resident_mb(pid: int) -> float:
    """Resident memory of a process and its children in MB."""
    root = psutil.Process(pid)
    in_bytes = sum(p.memory_info().rss for p in (root, *root.children(recursive=True)))
    return float(in_bytes) / 1e6
