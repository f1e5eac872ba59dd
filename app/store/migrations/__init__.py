"""Alembic migrations, run from code: `alembic.ini` is not needed and not there."""

import asyncio
import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory


def config(dsn: str) -> Config:
    """Alembic's configuration for the database behind `dsn`."""
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent))
    settings.attributes["dsn"] = dsn
    return settings


async def upgrade(dsn: str) -> None:
    """Bring the database to the newest schema; safe to call from many processes at once."""
    await asyncio.to_thread(_upgrade, dsn)


def _upgrade(dsn: str) -> None:
    with _ALEMBIC:
        command.upgrade(config(dsn), "head")


_ALEMBIC = threading.Lock()
"""Alembic keeps the running migration in module globals: one at a time in a process."""


def head() -> str:
    """The revision this code was written for."""
    revision = ScriptDirectory.from_config(config("")).get_current_head()
    return revision or ""
