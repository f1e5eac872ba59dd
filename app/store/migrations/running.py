"""Alembic at work. Imported where a migration is due: with SQLAlchemy it takes 30 MB."""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config


def config(dsn: str) -> Config:
    """Alembic's configuration for the database behind `dsn`."""
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent))
    settings.attributes["dsn"] = dsn
    return settings


def run(dsn: str) -> None:
    """Bring the database to the newest schema."""
    with _ALEMBIC:
        command.upgrade(config(dsn), "head")


_ALEMBIC = threading.Lock()
"""Alembic keeps the running migration in module globals: one at a time in a process."""
