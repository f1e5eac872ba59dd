"""A running service with agents for every state a turn can rest in, and clients of all kinds."""

import logging
import secrets
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import asyncpg
import httpx
import pytest
import structlog

from app.agents import Agent
from app.entrypoints.api import create_app
from app.http.auth import Authenticator
from app.observability.logs import configure_logging
from app.services.principal import Principal, Role
from app.turn.agent import RetryPolicy
from app.turn.ids import ActorId, TenantId
from tests.support.polling import eventually
from tests.support.postgres import PostgresServer
from tests.support.provider import RunningProvider, running_provider
from tests.support.service import Service, running_service, settings_for_tests

ANOTHER_TOKEN = "another-token-for-tests"
PROBLEM = "application/problem+json"
SECRET_WORDS = "the provider's own secret words"

CLERK = Agent(id="clerk", instructions="Be brief.", model="quick")
"""Plays the demo without tools: answers at once, and fails when told so (`/outage quota`)."""
PATIENT = Agent(
    id="patient",
    instructions="Be brief.",
    model="quick",
    retry=RetryPolicy(
        max_retries=9,
        initial_delay=timedelta(minutes=30),
        max_delay=timedelta(days=1),
        jitter="none",
    ),
)
"""Its failed calls are scheduled again, long after the test."""
MUTE = Agent(id="mute", instructions="Say nothing.", model="hanging")
"""Its model never answers: its turns stay RUNNING until they are cancelled."""
STRICT = Agent(id="strict", instructions="Be brief.", model="refusing")
"""Its model refuses every request as wrong: its turns end as FAILED."""
AGENTS = (CLERK, PATIENT, MUTE, STRICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """The service, the provider behind it, and the database below it."""

    service: Service
    provider: RunningProvider
    dsn: str

    @property
    def client(self) -> httpx.AsyncClient:
        """Signed in as the operator."""
        return self.service.client

    async def completed(self, conversation: str | None = None) -> dict[str, Any]:
        """A turn that has ended well."""
        return await self._rests("hello", "clerk", conversation)

    async def waiting(self, conversation: str | None = None) -> dict[str, Any]:
        """A turn that waits for its model."""
        return await self._rests(outage("quota"), "clerk", conversation)

    async def scheduled(self, conversation: str | None = None) -> dict[str, Any]:
        """A turn whose retry is due much later."""
        return await self._rests(outage("overloaded"), "patient", conversation)

    async def failed(self, conversation: str | None = None) -> dict[str, Any]:
        """A turn that its model's provider refused."""
        return await self._rests("hello", "strict", conversation)

    async def running(self, conversation: str | None = None) -> dict[str, Any]:
        """A turn at work; it never ends by itself."""
        turn = await self.service.send(conversation or fresh_id(), "hello", agentId="mute", wait=0)
        assert turn["status"] in {"READY", "RUNNING"}
        return turn

    async def at_work(self, conversation: str | None = None) -> dict[str, Any]:
        """A turn whose model call is begun, so that it stands still although it runs."""
        turn = await self.running(conversation)

        async def is_begun() -> dict[str, Any] | None:
            found = await self.service.turn(turn["turnId"])
            return found if found["counters"]["modelAttempts"] else None

        return await eventually(is_begun)

    async def post(self, path: str, body: object = None, **headers: str) -> httpx.Response:
        """A command of the operator's; header names with underscores for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(path, json=body, headers=named)

    @asynccontextmanager
    async def signed_in_as(
        self, role: Role, *, actor: str = "somebody", tenant: str = "default"
    ) -> AsyncGenerator[httpx.AsyncClient]:
        """A client of another principal; its answers come when they are complete."""
        principal = Principal(tenant_id=TenantId(tenant), actor_id=ActorId(actor), role=role)
        authenticator = Authenticator(ANOTHER_TOKEN, principal)
        app = create_app(replace(self.service.runtime, authenticator=authenticator))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app),
            base_url="http://turnkeeper",
            headers={"Authorization": f"Bearer {ANOTHER_TOKEN}"},
        ) as client:
            yield client

    async def rows(self, statement: str, *arguments: object) -> Sequence[dict[str, Any]]:
        """What the database holds."""
        return await rows(self.dsn, statement, *arguments)

    async def _rests(self, text: str, agent: str, conversation: str | None) -> dict[str, Any]:
        return await self.service.send(conversation or fresh_id(), text, agentId=agent)


@contextmanager
def logging_as_served(form: Literal["console", "json"]) -> Generator[None]:
    """Log lines as a served process writes them, to standard error, until the block ends."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()  # which configuring would close
    configure_logging(level="debug", form=form)
    structlog.configure(cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(level)


class _Connection(Protocol):
    async def fetch(self, query: str, *arguments: object) -> Sequence[Mapping[str, Any]]: ...
    async def close(self) -> None: ...


async def rows(dsn: str, statement: str, *arguments: object) -> Sequence[dict[str, Any]]:
    """What a database holds, or what a statement changes there, over a connection of its own."""
    connection = cast("_Connection", await asyncpg.connect(dsn))  # pyright: ignore[reportUnknownMemberType]
    try:
        return [dict(row) for row in await connection.fetch(statement, *arguments)]
    finally:
        await connection.close()


def outage(kind: str) -> str:
    """A message whose first model call fails so; the provider counts by text, so it is new."""
    return f"/outage {kind}\n{fresh_id()}"


def fresh_id() -> str:
    """An id that nobody else has."""
    return f"t-{secrets.token_hex(8)}"


@asynccontextmanager
async def running_rig(
    dsn: str, data_dir: Path, *, agents: Sequence[Agent] = AGENTS, with_worker: bool = True
) -> AsyncGenerator[Rig]:
    """Everything over one database, until the block ends."""
    async with running_provider() as provider:
        refused = {
            "times": 1_000_000,
            "status": 400,
            "body": {"error": {"message": SECRET_WORDS, "type": "invalid_request_error"}},
        }
        provider.script("refusing", [{"text": "", "faults": [refused]}])
        hanging = {"text": "", "faults": [{"times": 1_000_000, "hang": True}]}
        provider.script("hanging", [hanging] * 9)
        settings = settings_for_tests(data_dir, openai_base_url=provider.base_url)
        async with running_service(
            dsn, settings, agents=agents, with_worker=with_worker
        ) as service:
            yield Rig(service=service, provider=provider, dsn=dsn)


@pytest.fixture(scope="package")
async def rig(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Rig]:
    """One service for all tests of a package: each makes conversations of its own."""
    dsn = await postgres_server.fresh_database()
    async with running_rig(dsn, tmp_path_factory.mktemp("rig")) as running:
        yield running
    await postgres_server.drop_database(dsn)


@pytest.fixture(scope="package")
async def still(rig: Rig) -> dict[str, Any]:
    """A waiting turn for requests that must not change it; `unchanged` says whether they did."""
    turn = await rig.waiting()
    return await rig.service.turn(turn["turnId"])


async def unchanged(rig: Rig, turn: dict[str, Any]) -> bool:
    """Whether a turn is in every field what it was."""
    return await rig.service.turn(turn["turnId"]) == turn


def assert_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The body of an answer that must be this problem."""
    assert answer.headers["Content-Type"] == PROBLEM, answer.text
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), answer.text
    assert body["status"] == status
    assert body["type"] == f"urn:turnkeeper:problem:{code}"
    assert body["title"]
    assert body["detail"]
    return body
