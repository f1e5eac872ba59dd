"""Who runs the database.

PostgreSQL refuses to run as root. As root we therefore hand it to an unprivileged account and
give that account one folder of our own making. No other folder is opened for it: where it cannot
pass, we say so.
"""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.store.embedded.errors import EmbeddedPostgresError
from app.store.embedded.folders import nearest_existing

SYSTEM_ACCOUNT = "turnkeeper"

# Two first starts at the same moment make the account at the same moment, and one is locked out.
_USERADD_IS_LOCKED_OUT = 1
_USERADD_ATTEMPTS = 20
_USERADD_PAUSE_SECONDS = 0.1

# The server must see neither PGPORT, PGDATA and their like nor the keys of model providers, and
# its messages are matched in English.
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}

# Prints the first of its arguments that cannot be entered. The kernel is asked, as the account
# itself, because mode bits alone say nothing of access control lists.
_FIRST_CLOSED = 'for d; do [ -x "$d" ] || { printf %s "$d"; exit 0; }; done'


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A system user, and whether we have to become it before running the database."""

    name: str
    uid: int
    gid: int
    is_us: bool

    def run(
        self, command: Sequence[str], *, cwd: Path = Path("/"), timeout_seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program as this account, with a bare environment, apart from our terminal.

        Raises:
            EmbeddedPostgresError: it took longer than `timeout_seconds`.
            OSError: the account may not run it.
        """
        try:
            return subprocess.run(  # noqa: S603  our own programs, no shell
                command,
                check=False,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                cwd=cwd,
                env=_ENVIRONMENT,
                umask=0o077,
                timeout=timeout_seconds,
                start_new_session=True,  # Ctrl-C is for us; the database is stopped in order
                user=None if self.is_us else self.uid,
                group=None if self.is_us else self.gid,
                extra_groups=None if self.is_us else (),
            )
        except subprocess.TimeoutExpired:
            message = f"{command[0]} did not end within {timeout_seconds:g} seconds"
            raise EmbeddedPostgresError(message) from None

    def own(self, path: Path) -> None:
        """Makes a path we just made the account's, closed to everyone else."""
        path.chmod(0o700)
        if not self.is_us:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def first_closed(self, folder: Path) -> Path | None:
        """The outermost folder on the way to `folder`, itself included, that it cannot enter."""
        way = map(str, (*reversed(folder.parents), folder))
        closed = self.run(["/bin/sh", "-c", _FIRST_CLOSED, "sh", *way]).stdout
        return Path(closed) if closed else None


def account_for(cluster: Path) -> Account:
    """The account that runs the database kept in `cluster`, which need not exist yet.

    Raises:
        EmbeddedPostgresError: the folder belongs to somebody we cannot become.
    """
    us = os.geteuid()
    owner = cluster.stat().st_uid if nearest_existing(cluster) == cluster else None
    if us == 0:
        return _of(owner) if owner else _system_account()
    if owner not in (None, us):
        message = (
            f"the database in {cluster} belongs to user {_name(owner)}, and this is "
            f"{_name(us)}: start as the user who made it, or set TURNKEEPER_DATA_DIR to another "
            "folder"
        )
        raise EmbeddedPostgresError(message)
    return Account(name=_name(us), uid=us, gid=os.getegid(), is_us=True)


def _system_account() -> Account:
    _make_system_account()
    for name in (SYSTEM_ACCOUNT, "nobody"):
        try:
            return _of(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    message = (
        f"PostgreSQL does not run as root, and no user {SYSTEM_ACCOUNT!r} could be made: "
        f"run `useradd --system {SYSTEM_ACCOUNT}`, or set DATABASE_URL to a server of yours"
    )
    raise EmbeddedPostgresError(message)


def _make_system_account() -> None:
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    options += ["--shell", "/usr/sbin/nologin", SYSTEM_ACCOUNT]
    for _ in range(_USERADD_ATTEMPTS):
        if useradd is None or _exists(SYSTEM_ACCOUNT):
            return
        made = subprocess.run([useradd, *options], check=False, capture_output=True)  # noqa: S603  a fixed command line
        if made.returncode not in (0, _USERADD_IS_LOCKED_OUT):
            return
        time.sleep(_USERADD_PAUSE_SECONDS * made.returncode)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _of(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(name=str(uid), uid=uid, gid=uid, is_us=False)
    return Account(name=entry.pw_name, uid=uid, gid=entry.pw_gid, is_us=False)


def _name(uid: int | None) -> str:
    try:
        return pwd.getpwuid(uid or 0).pw_name
    except KeyError:
        return str(uid)
