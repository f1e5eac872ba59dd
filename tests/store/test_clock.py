"""The database's clock, as a process carries it on."""

from datetime import datetime, timedelta

from app.store.clock import DatabaseClock
from app.store.pool import connected


async def test_it_does_not_go_back_when_it_is_read_anew(database_dsn: str) -> None:
    ahead, now = await _read_anew(database_dsn, was_ahead=timedelta(milliseconds=900))

    assert now == ahead + timedelta.resolution


async def test_case_53_it_follows_a_database_whose_clock_was_set_back(database_dsn: str) -> None:
    ahead, now = await _read_anew(database_dsn, was_ahead=timedelta(hours=1))

    assert now < ahead


async def _read_anew(dsn: str, *, was_ahead: timedelta) -> tuple[datetime, datetime]:
    """What a clock says that is ahead of its database, and then, once it has read it."""
    clock = DatabaseClock()
    clock._reading += was_ahead  # pyright: ignore[reportPrivateUsage]
    ahead = clock()
    async with connected(dsn, size=1) as database:
        await clock.synchronise(database)
    return ahead, clock()
