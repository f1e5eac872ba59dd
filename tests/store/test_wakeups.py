"""What one process tells the others: soon, or a little later where only readers want to know."""

from typing import Any

import pytest
from typing_extensions import override

from app.store import wakeups
from app.store.pool import Database
from app.store.signals import Signal
from app.store.wakeups import PostgresWakeups
from app.turn.ids import TurnId

LONG = 3600.0
T1, T2 = TurnId("t1"), TurnId("t2")


class Counted(Database):
    """A database that counts what is told through it."""

    told = 0

    @override
    async def execute(self, statement: str, *arguments: object) -> None:
        self.told += 1
        await super().execute(statement, *arguments)


async def test_mere_progress_is_told_together_with_the_next_that_is_more(
    database: Database, database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "_PROGRESS_SECONDS", LONG)
    of_tests: Any = database
    counted = Counted(of_tests._pool)
    here = PostgresWakeups(database_dsn, counted, process_id="here")
    there = PostgresWakeups(database_dsn, database, process_id="there")
    async with here.running(), there.running():
        assert await there.runnable.wait(LONG) is None  # it listens now
        with there.watch(T1) as progress:
            for _ in range(50):
                here.announce(T1, runnable=False, is_progress=True)
            assert await Signal().wait(0.1)  # longer than what is told soon is gathered
            told_before = counted.told
            here.announce(T2, runnable=True)
            runnable = await there.runnable.wait(LONG)
            is_heard = await progress.wait(LONG)

    assert (told_before, counted.told) == (0, 1)
    assert (runnable, is_heard) == ({T2}, True)


async def test_mere_progress_is_told_in_the_end(
    database: Database, database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "_PROGRESS_SECONDS", 0.01)
    here = PostgresWakeups(database_dsn, database, process_id="here")
    there = PostgresWakeups(database_dsn, database, process_id="there")
    async with here.running(), there.running():
        assert await there.runnable.wait(LONG) is None
        with there.watch(T1) as progress:
            here.announce(T1, runnable=False, is_progress=True)

            assert await progress.wait(LONG)
