"""The database's clock, read once in a while and carried on by the monotonic one.

Every time that decides something (a lease, a retry, a failure's moment) must be the database's, or
processes whose clocks differ would disagree. Asking the database for each would cost a round trip;
a monotonic clock cannot be set, so the offset stays right between readings.
"""

import time
from datetime import UTC, datetime, timedelta

from app.store.pool import Database

_SAME_CLOCK = timedelta(seconds=1)
"""Readings of one clock do not differ by more."""


class DatabaseClock:
    """A `ports.Clock`; call `synchronise` at the start and now and then.

    It does not go back where readings differ by the network's whims: what happened later in this
    process has the later time. Where the database's own clock was set back, it follows.
    """

    def __init__(self) -> None:
        self._read_at = time.monotonic()
        self._reading = datetime.now(UTC)
        self._said = datetime.min.replace(tzinfo=UTC)

    def __call__(self) -> datetime:
        now = self._reading + timedelta(seconds=time.monotonic() - self._read_at)
        if timedelta() <= self._said - now < _SAME_CLOCK:
            now = self._said + timedelta.resolution
        self._said = now
        return now

    async def synchronise(self, database: Database) -> None:
        """Read the database's clock; half the round trip is counted as gone."""
        before = time.monotonic()
        reading = await database.value("SELECT clock_timestamp()")
        after = time.monotonic()
        self._reading, self._read_at = reading, (before + after) / 2
