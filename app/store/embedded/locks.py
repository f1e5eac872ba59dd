"""Two lock files in the data folder, held by `flock`.

The kernel drops such a lock when its process dies, however it dies. That is why the users of a
server are counted by locks and not by process ids in a file: the dead never count, and a process
id that was given to somebody else fools nobody.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from app.store.embedded.errors import EmbeddedPostgresError

_POLL_SECONDS = 0.02


class UseMark:
    """One user's shared lock: while any is held, the server is in use."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = _open(path)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def give_up(self) -> bool:
        """Gives the mark up; True when it was the last one. A second call answers False.

        Call it inside `starting_or_stopping`, so that nobody arrives in between.
        """
        if self._descriptor is None:
            return False
        descriptor, self._descriptor = self._descriptor, None
        try:
            return _try_exclusive(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def starting_or_stopping(path: Path, *, timeout_seconds: float = 330) -> Generator[None]:
    """Keeps every other start and stop of the same server out.

    Raises:
        EmbeddedPostgresError: another process is at it for longer than `timeout_seconds`.
    """
    descriptor = _open(path)
    try:
        _wait_for_exclusive(descriptor, path, timeout_seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for_exclusive(descriptor: int, path: Path, timeout_seconds: float) -> None:
    give_up_at = time.monotonic() + timeout_seconds
    while not _try_exclusive(descriptor):
        if time.monotonic() > give_up_at:
            message = (
                f"another process has been starting or stopping the database of {path.parent} "
                f"for more than {timeout_seconds:g} seconds: see who holds {path}"
            )
            raise EmbeddedPostgresError(message)
        time.sleep(_POLL_SECONDS)


def _try_exclusive(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except PermissionError:
        message = (
            f"{path} cannot be opened: the data folder was made by another user; start as that "
            "user, or set TURNKEEPER_DATA_DIR to another folder"
        )
        raise EmbeddedPostgresError(message) from None
