"""One client and one simulated provider for all tests of this folder."""

from collections.abc import AsyncGenerator

import pytest

from app.providers.http import HttpClient, new_client
from tests.support.provider import RunningProvider, running_provider


@pytest.fixture(scope="package")
async def http() -> AsyncGenerator[HttpClient, None]:
    async with new_client() as client:
        yield client


@pytest.fixture(scope="package")
async def provider() -> AsyncGenerator[RunningProvider, None]:
    """A script set on it begins anew, with no requests received."""
    async with running_provider() as running:
        yield running
