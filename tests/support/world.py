"""The service without a worker, its clock and its agents in a test's hand."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from app.entrypoints import api, wiring
from app.http.auth import Authenticator
from app.ports import LoadedAgent
from app.runner.commit import TurnWriter
from app.services.deps import Services
from app.services.principal import Principal, Role
from app.store.pool import Database, connected
from app.turn.agent import Agent
from app.turn.ids import AgentId, AgentVersion, TenantId
from tests.support.postgres import postgres_for_tests
from tests.support.service import TOKEN, settings_for_tests
from tests.support.turns import AMY, NOON


class AnyAgents:
    """A catalog that takes any agent at any time, each under a version of its own."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[AgentId, AgentVersion], LoadedAgent] = {}

    def add(self, agent: Agent) -> Agent:
        """The agent under a version that nobody else has; it is the current one from now on."""
        version = AgentVersion(str(len(self._loaded)))
        agent = replace(agent, version=version)
        self._loaded[agent.agent_id, version] = LoadedAgent(agent=agent, tools={})
        return agent

    def current(self, agent_id: AgentId | None) -> LoadedAgent | None:
        del agent_id  # all are versions of one
        return next(reversed(self._loaded.values()), None)

    def load(self, agent_id: AgentId, version: AgentVersion) -> LoadedAgent | None:
        return self._loaded.get((agent_id, version))

    def all(self) -> Sequence[Agent]:
        return tuple(each.agent for each in self._loaded.values())

    def versions(self) -> Sequence[tuple[AgentId, AgentVersion]]:
        return tuple(self._loaded)


@dataclass(slots=True, kw_only=True)
class World:
    """The service without a worker, its clock and its agents in the test's hand."""

    loop: asyncio.Runner
    dsn: str
    database: Database
    client: httpx.AsyncClient
    amy: httpx.AsyncClient
    """Of an operator who has asked for none of the turns, and answers their calls."""
    services: Services
    catalog: AnyAgents
    now: list[Any]
    """One element: the time."""
    conversations: int = 0

    def do(self, coroutine: Any) -> Any:  # noqa: ANN401 - whatever it gives
        return self.loop.run(coroutine)

    def fresh_conversation(self) -> str:
        self.conversations += 1
        return f"c-{self.conversations}"


@asynccontextmanager
async def world(loop: asyncio.Runner, data_dir: Path) -> AsyncGenerator[World]:
    """The service over a database of its own, until the block ends."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(postgres_for_tests())
        dsn = await server.fresh_database()
        database = await stack.enter_async_context(connected(dsn, size=1))
        runtime = await stack.enter_async_context(
            wiring.build(settings_for_tests(data_dir), dsn, stopping=asyncio.Event())
        )
        now, catalog = [NOON], AnyAgents()
        services = replace(
            runtime.services,
            catalog=catalog,
            clock=lambda: now[0],
            writer=TurnWriter(
                store=runtime.services.turns,
                wakeups=runtime.services.wakeups,
                clock=lambda: now[0],
                catalog=catalog,
                new_id=runtime.services.new_id,
                recent=runtime.services.recent,
            ),
        )
        over = replace(runtime, services=services)
        amy = Principal(tenant_id=TenantId("default"), actor_id=AMY, role=Role.OPERATOR)
        her_own = replace(over, authenticator=Authenticator(TOKEN, amy))
        yield World(
            loop=loop,
            dsn=dsn,
            database=database,
            client=await stack.enter_async_context(_client(over)),
            amy=await stack.enter_async_context(_client(her_own)),
            services=services,
            catalog=catalog,
            now=now,
        )


def _client(runtime: wiring.Runtime) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=api.create_app(runtime)),
        base_url="http://turnkeeper",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )


@pytest.fixture(scope="module")
def here() -> Generator[World]:
    """The service over a database of its own, for tests that drive the event loop themselves."""
    with TemporaryDirectory() as folder, asyncio.Runner() as loop:
        context = world(loop, Path(folder))
        try:
            yield loop.run(context.__aenter__())
        finally:
            loop.run(context.__aexit__(None, None, None))
