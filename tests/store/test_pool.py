"""Connections between statements: kept at hand, never handed out broken, never too many."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from app.ports import StoreUnavailable
from app.store.pool import Database, connected
from tests.support.polling import eventually

_ME = "SELECT pg_backend_pid()"


@pytest.fixture
async def two(database_dsn: str) -> AsyncGenerator[Database, None]:
    """A pool of at most two connections."""
    async with connected(database_dsn, size=2) as database:
        yield database


async def test_one_statement_after_another_needs_one_connection(two: Database) -> None:
    assert len({await two.value(_ME) for _ in range(5)}) == 1


async def test_no_more_statements_run_at_once_than_there_are_connections(two: Database) -> None:
    slow = [two.value("SELECT pg_backend_pid() FROM pg_sleep(0.02)") for _ in range(8)]

    assert len(set(await asyncio.gather(*slow))) == 2


async def test_a_connection_that_the_server_has_ended_is_not_handed_out_again(
    two: Database, database_dsn: str
) -> None:
    gone = await two.value(_ME)
    async with connected(database_dsn, size=1) as other:
        await other.execute("SELECT pg_terminate_backend($1, 5000)", gone)
    await _hung_up(two)

    assert await two.value(_ME) != gone


async def _hung_up(database: Database) -> None:
    """Until the end has been noticed here, too; a statement in between may still fail."""
    for _ in range(2):
        try:
            await database.value(_ME)
        except StoreUnavailable:
            return


async def test_a_statement_that_fails_leaves_a_connection_that_works(two: Database) -> None:
    for _ in range(3):
        with pytest.raises(Exception, match="division by zero"):
            await two.value("SELECT 1 / 0")

    assert await two.value("SELECT 1") == 1


async def test_a_statement_that_is_cancelled_gives_its_connection_back(two: Database) -> None:
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await two.execute("SELECT pg_sleep(10)")

    assert await asyncio.wait_for(two.value("SELECT 1"), timeout=5) == 1


async def test_a_transaction_keeps_its_connection_to_itself(two: Database) -> None:
    async with two.together() as both:
        mine = await both.value(_ME)

        assert await both.value(_ME) == mine
        assert {await two.value(_ME) for _ in range(3)} != {mine}


async def test_at_the_end_no_connection_is_left(database_dsn: str) -> None:
    async with connected(database_dsn, size=3) as database:
        backends = await asyncio.gather(*(database.value(_ME) for _ in range(3)))

    async with connected(database_dsn, size=1) as other:

        async def are_gone() -> bool:
            left = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1::int[])"
            return bool(await other.value(left, backends) == 0)

        await eventually(are_gone)
