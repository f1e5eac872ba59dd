"""The whole service in the test's event loop: API on a loopback port, a worker, PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from app.agents import Agent
from app.entrypoints import api, wiring
from app.entrypoints.serving import STALLED_SECONDS, Listener
from app.ports import ModelDirectory
from app.settings import Settings
from app.workers.loop import Worker
from tests.support.polling import eventually
from tests.support.prompt_server import PromptServer

TOKEN = "a-token-for-tests-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A signed-in client of a running service."""

    url: str
    client: httpx.AsyncClient

    async def send(
        self, conversation: str, text: str, *, wait: int = 20, **more: object
    ) -> dict[str, Any]:
        """Post a message that must be accepted; the turn once it rests."""
        answer = await self.client.post(
            f"/conversations/{conversation}/messages",
            json={"content": text, **more},
            headers={"Prefer": f"wait={wait}"},
        )
        assert answer.status_code == 202, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def turn(self, turn_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/turns/{turn_id}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def at_rest(self, turn_id: str) -> dict[str, Any]:
        """The turn once it waits or has ended."""

        async def rests() -> dict[str, Any] | None:
            turn = await self.turn(turn_id)
            return None if turn["status"] in ("READY", "RUNNING") else turn

        return await eventually(rests)

    async def resume(
        self, turn_id: str, body: dict[str, object], *, wait: int = 20
    ) -> httpx.Response:
        return await self.client.post(
            f"/turns/{turn_id}/resume", json=body, headers={"Prefer": f"wait={wait}"}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(SignedIn):
    """A running service and a signed-in client of it."""

    runtime: wiring.Runtime

    @property
    def login_url(self) -> str:
        """What the start would print; a fresh code each time."""
        return f"{self.url}/#login={self.runtime.login_codes.issue()}"


def asking(models: ModelDirectory, worker: Worker) -> Worker:
    """The same worker, whose turns find their models in `models`."""
    caller = replace(worker.driver.caller, models=models)
    return replace(worker, driver=replace(worker.driver, caller=caller))


@asynccontextmanager
async def signed_in(url: str) -> AsyncGenerator[httpx.AsyncClient]:
    """A client with the tests' token."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    # The server closes idle connections after 5 s; a request must not go out at that moment.
    limits = httpx.Limits(keepalive_expiry=2)
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=30, limits=limits, trust_env=False
    ) as client:
        yield client


def settings_for_tests(data_dir: Path, **changes: Any) -> Settings:  # noqa: ANN401 - any setting
    """Settings that do not depend on the environment the tests run in."""
    defaults: dict[str, Any] = {"token": TOKEN, "data_dir": data_dir, "claim_poll_seconds": 0.2}
    return Settings(**(defaults | changes))


@asynccontextmanager
async def running_service(
    dsn: str,
    settings: Settings,
    *,
    agents: Sequence[Agent] = (),
    with_worker: bool = True,
    models: ModelDirectory | None = None,
    stalled_seconds: float = STALLED_SECONDS,
) -> AsyncGenerator[Service]:
    """The service over a database of its own, until the block ends.

    With `models` its worker asks those instead of what the settings name.
    """
    stop = asyncio.Event()
    with Listener.bind(
        "127.0.0.1", 0, variable="TURNKEEPER_PORT", stalled_seconds=stalled_seconds
    ) as listener:
        async with wiring.build(settings, dsn, stopping=stop, agents=agents) as runtime:
            server = PromptServer(api.create_app(runtime), listener)
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(server.serve_until(stop))]
                if with_worker:
                    worker = runtime.worker if models is None else asking(models, runtime.worker)
                    running.append(tasks.create_task(worker.run(stop)))
                assert await server.is_ready()
                try:
                    async with signed_in(listener.url) as client:
                        yield Service(url=listener.url, runtime=runtime, client=client)
                finally:
                    stop.set()
                    # In order, also when a test fails: a cancelled server leaves its socket to the
                    # loop, and the next test's server, which gets the same number, is never heard.
                    await asyncio.wait(running)
