from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.settings import Settings
from tests.support.oracles import check_everything
from tests.support.provider import RunningProvider, running_provider
from tests.support.service import Service, running_service, settings_for_tests
from tests.support.story import Ledger, clerk


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a story plays: a database, a strict provider, a ledger, and settings for a process."""

    dsn: str
    provider: RunningProvider
    ledger: Ledger
    settings: Settings

    @property
    def queueing(self) -> "Stage":
        """Where no turn is handed to the worker of its process: every one has to be claimed."""
        return replace(self, settings=self.settings.model_copy(update={"hand_over": False}))


@pytest.fixture(scope="package")
async def one_provider() -> AsyncGenerator[RunningProvider]:
    async with running_provider() as provider:
        yield provider


@pytest.fixture
def stage(database_dsn: str, tmp_path: Path, one_provider: RunningProvider) -> Stage:
    one_provider.forget_everything()
    return Stage(
        dsn=database_dsn,
        provider=one_provider,
        ledger=Ledger(tmp_path),
        settings=settings_for_tests(tmp_path, openai_base_url=one_provider.base_url),
    )


@pytest.fixture
async def service(stage: Stage) -> AsyncGenerator[Service]:
    """Without a worker; whatever it comes to, all oracles are asked at the end."""
    agents = [clerk(stage.ledger)]
    async with running_service(
        stage.dsn, stage.settings, agents=agents, with_worker=False
    ) as running:
        yield running
    await check_everything(stage.dsn, stage.ledger)
