"""Alembic migrations, run from code: `alembic.ini` is not needed and not there."""

import asyncio
from pathlib import Path

from app.store.inspection import inspect

_REVISION_DIGITS = 4


async def upgrade(dsn: str) -> None:
    """Bring the database to the newest schema; safe to call from many processes at once.

    Raises:
        DatabaseUnreachableError: it cannot be connected to within 10 seconds.
    """
    if (await inspect(dsn)).revision != head():
        await asyncio.to_thread(_upgrade, dsn)


def _upgrade(dsn: str) -> None:
    from app.store.migrations.running import run  # noqa: PLC0415 - few starts need all it imports

    run(dsn)


def head() -> str:
    """The revision this code was written for: files are named by theirs, and are one line."""
    versions = (Path(__file__).parent / "versions").glob(f"{'[0-9]' * _REVISION_DIGITS}_*.py")
    return max(path.name[:_REVISION_DIGITS] for path in versions)
