"""A database cluster on disk: made by `initdb`, started and ended by `pg_ctl`.

Whether its server runs is never asked of a process id, which may by now be somebody else's: a
server runs when something listens on its socket. The socket lies in a folder that only the
database's account can enter, so nobody else can be the one that listens.
"""

import os
import shlex
import shutil
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from app.store.embedded.account import Account
from app.store.embedded.errors import EmbeddedPostgresError
from app.store.embedded.programs import MAJOR_VERSION

SUPERUSER = "turnkeeper"
SOCKET_PORT = 5432

_SOCKET_NAME = f".s.PGSQL.{SOCKET_PORT}"
_STARTUP_LOG = "startup.log"
_MAX_SOCKET_PATH_BYTES = 107  # what the kernel takes
_POLL_SECONDS = 0.05
_START_SECONDS = 300  # after a crash the log is replayed first; one that dies is told at once
_PASSING_SECONDS = 15
_STOP_SECONDS = 30

# What is left of a server that was killed: its last processes are still ending, or a start that
# was under way when we came is not through yet. Both pass by themselves.
_PASSING = ("pre-existing shared memory block", "lock file")

_INITDB_OPTIONS = (
    f"--username={SUPERUSER}",
    "--auth=trust",  # the socket's folder is closed to everybody else
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",  # sorts alike on every machine
    "--builtin-locale=C.UTF-8",
)
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "autovacuum": "on",
    "jit": "off",
    "timezone": "UTC",
    # A week of logs and no more; never a statement or a row in them, since those hold prompts.
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_truncate_on_rotation": "on",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_timezone": "UTC",
}
_QUICK_AND_UNSAFE = {"fsync": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster, the account that owns it and the programs that run it."""

    folder: Path
    account: Account
    programs: Path
    fsync: bool = True
    """False only where losing the data in a power cut does not matter, as in tests."""

    def ensure_exists(self) -> None:
        """Makes the cluster unless it is there; an interrupted attempt leaves no half one.

        Raises:
            EmbeddedPostgresError: `initdb` failed, or the folder holds something else.
        """
        for draft in self.folder.parent.glob(f"{self.folder.name}.new-*"):
            shutil.rmtree(draft, ignore_errors=True)
        if not self.folder.exists() or not any(self.folder.iterdir()):
            self._make()
        version_file = self.folder / "PG_VERSION"
        version = version_file.read_text().strip() if version_file.exists() else "none"
        if version != str(MAJOR_VERSION):
            message = (
                f"{self.folder} should hold a database of PostgreSQL {MAJOR_VERSION}, but its "
                f"version is {version}: move it away or set TURNKEEPER_DATA_DIR to another folder"
            )
            raise EmbeddedPostgresError(message)

    def ensure_running(self) -> tuple[Path, bool]:
        """The socket's folder of the running server, and whether it ran already.

        Raises:
            EmbeddedPostgresError: it does not start; with its last words.
        """
        give_up_at = time.monotonic() + _PASSING_SECONDS
        while (found := self.socket_folder()) is None:
            self._discard_stale_lock_files()
            chosen = self._choose_socket_folder()
            failure = self._launch(chosen)
            if failure is None:
                return chosen, False
            _remove_if_temporary(chosen)
            if not any(sign in failure for sign in _PASSING) or time.monotonic() > give_up_at:
                message = f"PostgreSQL does not start in {self.folder}: {failure}"
                raise EmbeddedPostgresError(message)
            time.sleep(_POLL_SECONDS)
        return found, True

    def halt(self) -> None:
        """Ends the server in order, cutting its connections; nothing happens if it is gone.

        Raises:
            EmbeddedPostgresError: it does not end.
        """
        folder = self.socket_folder()
        if folder is None:
            return
        complaint: str | None = None
        for mode in ("fast", "immediate"):
            complaint = self._pg_ctl("stop", "-m", mode, "-t", str(_STOP_SECONDS))
            if complaint is None or self.socket_folder() is None:
                _remove_if_temporary(folder)
                return
        message = f"PostgreSQL in {self.folder} does not end: {complaint}"
        raise EmbeddedPostgresError(message)

    def socket_folder(self) -> Path | None:
        """The folder of the socket on which this cluster's server listens, if one does."""
        folder = self._recorded(line=5)
        return Path(folder) if folder and _is_listening(Path(folder) / _SOCKET_NAME) else None

    def _make(self) -> None:
        draft = Path(tempfile.mkdtemp(prefix=f"{self.folder.name}.new-", dir=self.folder.parent))
        self.account.own(draft)
        options = [*_INITDB_OPTIONS, *([] if self.fsync else ["--no-sync"])]
        result = self.account.run([str(self.programs / "initdb"), *options, "-D", str(draft)])
        if result.returncode != 0:
            shutil.rmtree(draft, ignore_errors=True)
            message = f"initdb failed in {draft.parent}: {_tail(result.stderr or result.stdout)}"
            raise EmbeddedPostgresError(message)
        draft.rename(self.folder)
        _flush(self.folder.parent)

    def _launch(self, socket_folder: Path) -> str | None:
        settings = _SETTINGS | {"unix_socket_directories": f'"{socket_folder}"'}
        settings |= {} if self.fsync else _QUICK_AND_UNSAFE
        options = " ".join(f"-c {shlex.quote(f'{k}={v}')}" for k, v in settings.items())
        (self.folder / _STARTUP_LOG).unlink(missing_ok=True)
        result = self._pg_ctl("start", "-t", str(_START_SECONDS), "-l", _STARTUP_LOG, "-o", options)
        return None if result is None else f"{result}\n{self._last_words()}"

    def _pg_ctl(self, *arguments: str) -> str | None:
        # Run from within: pg_ctl hands its paths to a shell, and not every path survives that.
        command = [str(self.programs / "pg_ctl"), "-w", "-s", "-D", ".", *arguments]
        result = self.account.run(command, cwd=self.folder, timeout_seconds=_START_SECONDS + 10)
        return _tail(result.stderr or result.stdout) if result.returncode else None

    def _last_words(self) -> str:
        logs = sorted((self.folder / "log").glob("*.log"), key=lambda log: log.stat().st_mtime)
        texts = [
            log.read_text(errors="replace")
            for log in (self.folder / _STARTUP_LOG, *logs[-1:])
            if log.exists()
        ]
        return "\n".join(_tail(text) for text in texts)

    def _choose_socket_folder(self) -> Path:
        """The cluster's own folder, or a private one elsewhere where its path does not do."""
        if _does_as_address(self.folder):
            return self.folder
        base = next(
            base for base in _short_folders() if _does_as_address(base / "turnkeeper-12345678")
        )
        folder = Path(tempfile.mkdtemp(prefix="turnkeeper-", dir=base))
        self.account.own(folder)
        return folder

    def _discard_stale_lock_files(self) -> None:
        """Lets a start pass whose way is barred by a process that only inherited an id.

        After a power cut `postmaster.pid` may name a process of the same user that is no server,
        and PostgreSQL would refuse to start for as long as that lives. A dead process it sorts
        out by itself, and better: it also looks for what is left of the old server's memory.
        """
        pid = self._recorded(line=1)
        if pid is None or not _is_alive_elsewhere(pid, self.folder):
            return
        for name in ("postmaster.pid", f"{_SOCKET_NAME}.lock", _SOCKET_NAME):
            (self.folder / name).unlink(missing_ok=True)

    def _recorded(self, *, line: int) -> str | None:
        try:
            lines = (self.folder / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        return lines[line - 1].strip() or None if len(lines) >= line else None


def _does_as_address(folder: Path) -> bool:
    """Whether a socket can lie there: short enough, and nothing that a list of hosts splits at."""
    address = str(folder / _SOCKET_NAME)
    return len(os.fsencode(address)) <= _MAX_SOCKET_PATH_BYTES and not set(address) & set(",:\"'")


def _is_listening(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(address))
        except TimeoutError:
            return True  # its queue is full, so somebody has one
        except OSError:
            return False
    return True


def _short_folders() -> list[Path]:
    """Folders for what lives as long as a server, each of them open to all, the best one first."""
    named = Path(os.environ.get("XDG_RUNTIME_DIR", "/nonexistent"))
    runtime = Path("/run") if os.geteuid() == 0 else named
    shared = (Path(tempfile.gettempdir()), Path("/tmp"))  # noqa: S108  mkdtemp makes a private one in it
    return [folder for folder in (runtime, *shared) if os.access(folder, os.W_OK)]


def _is_alive_elsewhere(pid: str, folder: Path) -> bool:
    """Whether the process is there and yet no server of `folder`, in which a server works."""
    process = Path("/proc", pid)
    if not process.exists():
        return False  # it is gone, or there is no /proc and we cannot know
    try:
        return not (process / "cwd").samefile(folder)
    except OSError:
        return True  # another user's, or dead and not yet buried by its parent


def _remove_if_temporary(socket_folder: Path) -> None:
    if socket_folder.name.startswith("turnkeeper-"):
        shutil.rmtree(socket_folder, ignore_errors=True)


def _flush(folder: Path) -> None:
    """Brings a rename in `folder` to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _tail(text: str, *, lines: int = 8) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
