"""The secrets and ids a process starts with: the default token, and fresh ids."""

import os
import secrets
import time
from pathlib import Path

from app.settings import Settings

_OF_AN_ATTEMPT = "att"
_TOKEN_FILE = "token"  # noqa: S105 - a file's name


def new_id(prefix: str) -> str:
    """A fresh id such as `turn_0199…`: milliseconds first, so that new rows stand together.

    One of an attempt (`att`) is told apart from others of its turn alone, and stands several times
    in every row of a round: it is short.
    """
    if prefix == _OF_AN_ATTEMPT:
        return f"{prefix}_{secrets.token_hex(6)}"
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def default_token(settings: Settings) -> str:
    """The default token: as set, or generated once and kept in a file of mode 0600."""
    if settings.token is not None:
        return settings.token.get_secret_value()
    settings.data_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
    return _kept_token(settings.data_dir / _TOKEN_FILE)


def _kept_token(path: Path) -> str:
    """The file's token; of two processes that start at once, both get the first one's."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(32))
    try:
        os.link(fresh, path)  # fails if there is one, and never shows half a token
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_text().strip()
