from collections.abc import AsyncGenerator

import pytest

from app.store.pool import Database, connected


@pytest.fixture
async def database(database_dsn: str) -> AsyncGenerator[Database]:
    """A migrated database of its own."""
    async with connected(database_dsn, size=5) as found:
        yield found
