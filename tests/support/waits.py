"""Turns that wait for people and outside tools, and those who answer, over HTTP.

A `Desk` is a running service with the cashier (`tests.support.waits_cashier`). When its block ends
everything in the database is looked at: no settled turn waits for anybody, and nothing was done
that nobody had approved.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import httpx

from app.agents import Agent
from app.entrypoints.api import create_app
from app.entrypoints.wiring import Runtime
from app.http.auth import Authenticator
from app.services.principal import Principal, Role
from app.turn.ids import ActorId, TenantId
from tests.e2e.conftest import Stage
from tests.http.rig import PROBLEM, rows
from tests.support.ledger import Bank
from tests.support.service import TOKEN, Service, running_service
from tests.support.story import MODEL
from tests.support.waits_cashier import cashier
from tests.support.waits_checks import check_waits

Turn: TypeAlias = dict[str, Any]
Round: TypeAlias = dict[str, object]

DONE: Round = {"text": "Done."}
_TOKEN = "a-token-of-somebody-else"


def call(call_id: str, name: str, /, **arguments: object) -> dict[str, object]:
    """A call as the model writes it."""
    return {"id": call_id, "name": name, "arguments": json.dumps(arguments)}


def asks(*calls: dict[str, object]) -> Round:
    """A round in which the model asks for these."""
    return {"calls": list(calls)}


def waiting_for(turn: Turn) -> dict[str, Any]:
    """What the turn waits for; that is exactly one thing."""
    (wait,) = turn["waits"]
    assert wait == turn["suspension"]
    assert wait["correlationId"] == wait["callId"]
    found: dict[str, Any] = wait
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A running service with the cashier, and those who answer what it asks."""

    stage: Stage
    service: Service
    wire: httpx.AsyncClient
    """The operator's, over a real connection: event streams have no end."""

    @property
    def bank(self) -> Bank:
        return Bank(self.stage.ledger.folder)

    async def opens(
        self,
        *rounds: Round,
        conversation: str = "ses_1",
        text: str = "Go.",
        **more: Any,  # noqa: ANN401 - as `send`
    ) -> Turn:
        """A turn in which the model says `rounds` and then that it is done, once it rests."""
        self.stage.provider.script(MODEL, [*rounds, DONE, DONE])
        return await self.says(text, conversation=conversation, agentId="cashier", **more)

    async def says(self, text: str, *, conversation: str = "ses_1", **more: Any) -> Turn:  # noqa: ANN401
        """A message that is taken; the turn once it rests."""
        sent = await self.service.send(conversation, text, **more)
        return await self.rests(sent)

    async def posts(self, conversation: str = "ses_1", **body: object) -> httpx.Response:
        """A message, whatever becomes of it."""
        path = f"/conversations/{conversation}/messages"
        return await self.service.client.post(path, json=body, headers={"Prefer": "wait=20"})

    async def rests(self, turn: Mapping[str, Any]) -> Turn:
        return await self.service.at_rest(turn["turnId"])

    async def now(self, turn: Mapping[str, Any]) -> Turn:
        return await self.service.turn(turn["turnId"])

    async def sends(
        self, turn: Turn, command: object, call_id: object = None, /, **more: object
    ) -> httpx.Response:
        """A command, whatever becomes of it; of `more` the key goes into the headers."""
        key = {"Idempotency-Key": str(more.pop("key"))} if "key" in more else {}
        wait = str(more.pop("wait", 20))
        body = {"command": command} | ({} if call_id is None else {"callId": call_id}) | more
        return await self.service.client.post(
            f"/turns/{turn['turnId']}/resume", json=body, headers={"Prefer": f"wait={wait}"} | key
        )

    async def approves(self, turn: Turn, call_id: str, **more: object) -> Turn:
        return await self._accepted(await self.sends(turn, "APPROVE_TOOL", call_id, **more))

    async def rejects(self, turn: Turn, call_id: str, reason: str = "Too dear.") -> Turn:
        return await self._accepted(await self.sends(turn, "REJECT_TOOL", call_id, reason=reason))

    async def fills_in(self, turn: Turn, call_id: str, **data: object) -> Turn:
        return await self._accepted(await self.sends(turn, "USER_INPUT", call_id, data=data))

    async def tells(self, turn: Turn, call_id: str, text: str) -> Turn:
        return await self._accepted(await self.sends(turn, "USER_INPUT", call_id, text=text))

    async def delivers(self, turn: Turn, call_id: str, output: object) -> Turn:
        return await self._accepted(await self.sends(turn, "TOOL_RESULT", call_id, output=output))

    async def gives_up(self, turn: Turn, call_id: str, code: str = "gone") -> Turn:
        answer = await self.sends(turn, "TOOL_ERROR", call_id, code=code, message="Not there.")
        return await self._accepted(answer)

    async def replans(self, turn: Turn, text: str) -> Turn:
        answer = await self.sends(turn, "REPLAN_WITH_MESSAGE", message={"content": text})
        return await self._accepted(answer)

    async def cancels(self, turn: Turn) -> Turn:
        answer = await self.service.client.post(f"/turns/{turn['turnId']}/cancel")
        assert answer.status_code in {200, 202}, answer.text
        return await self.rests(turn)

    async def is_refused(
        self, turn: Turn, answer: httpx.Response, status: int, code: str
    ) -> dict[str, Any]:
        """The problem of an answer that has changed nothing."""
        body: dict[str, Any] = answer.json()
        assert (answer.status_code, body.get("code")) == (status, code), answer.text
        assert answer.headers["Content-Type"] == PROBLEM
        assert await self.now(turn) == turn
        return body

    async def results(self, conversation: str = "ses_1") -> list[tuple[str, str]]:
        """Call and outcome of every result of the conversation, in its place."""
        return [(m["callId"], m["outcome"]) for m in await self.tool_messages(conversation)]

    async def tool_messages(self, conversation: str = "ses_1") -> list[dict[str, Any]]:
        said = await self.messages(conversation)
        return [message for message in said if message["role"] == "tool"]

    async def messages(self, conversation: str = "ses_1") -> list[dict[str, Any]]:
        answer = await self.service.client.get(
            f"/conversations/{conversation}/messages", params={"limit": 100}
        )
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def events(self, turn: Turn) -> list[dict[str, Any]]:
        """What is stored of the turn's events so far, as readers get them."""
        version = (await self.now(turn))["version"]
        path = f"/turns/{turn['turnId']}/events"
        async with asyncio.timeout(15), self.wire.stream("GET", path) as answer:
            return await events_until(answer, version)

    async def types(self, turn: Turn) -> list[str]:
        return [event["type"] for event in await self.events(turn)]

    async def completed(self, turn: Turn) -> list[str]:
        """The calls whose tools have ended well so far, also those behind an open one."""
        events = await self.events(turn)
        return sorted(e["data"]["callId"] for e in events if e["type"] == "TOOL_COMPLETED")

    def requests(self) -> list[list[dict[str, Any]]]:
        """The messages of each request that the model was sent."""
        bodies: list[Any] = [each["body"] for each in self.stage.provider.requests(MODEL)]
        return [body["messages"] for body in bodies]

    async def listed(self, path: str, **params: object) -> list[dict[str, Any]]:
        answer = await self.service.client.get(path, params={k: str(v) for k, v in params.items()})
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def audited(self, turn: Turn) -> list[tuple[str, str, str | None]]:
        """Action, outcome and call of each audit row of the turn, in order."""
        found = await self.rows(
            "SELECT action, outcome, call_id FROM audit WHERE turn_id = $1 ORDER BY seq",
            turn["turnId"],
        )
        return [(row["action"], row["outcome"], row["call_id"]) for row in found]

    async def rows(self, statement: str, *arguments: object) -> Sequence[dict[str, Any]]:
        return await rows(self.stage.dsn, statement, *arguments)

    @asynccontextmanager
    async def as_somebody(
        self, role: Role, actor: str, tenant: str = "default"
    ) -> AsyncGenerator["Desk"]:
        """The same desk, approached by somebody else."""
        principal = Principal(tenant_id=TenantId(tenant), actor_id=ActorId(actor), role=role)
        authenticator = Authenticator(_TOKEN, principal)
        async with self.over(replace(self.service.runtime, authenticator=authenticator)) as desk:
            yield desk

    @asynccontextmanager
    async def over(self, runtime: Runtime, token: str = _TOKEN) -> AsyncGenerator["Desk"]:
        """A desk whose requests are served by `runtime`, in this process."""
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=create_app(runtime)),
            base_url="http://turnkeeper",
            headers={"Authorization": f"Bearer {token}"},
        ) as client:
            service = replace(self.service, runtime=runtime, client=client)
            yield replace(self, service=service)

    async def _accepted(self, answer: httpx.Response) -> Turn:
        assert answer.status_code == 202, answer.text
        return await self.rests(answer.json())


async def events_until(answer: httpx.Response, version: int) -> list[dict[str, Any]]:
    """The envelopes of a stream up to this sequence."""
    found: list[dict[str, Any]] = []
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
            if found[-1]["sequence"] >= version:
                break
    return found


@asynccontextmanager
async def a_desk(
    stage: Stage,
    *agents: Agent,
    with_worker: bool = True,
    **options: Any,  # noqa: ANN401
) -> AsyncGenerator[Desk]:
    """A desk with `agents`, or with the cashier under `options`; all is looked at in the end."""
    declared = agents or (cashier(Bank(stage.ledger.folder), **options),)
    async with running_service(
        stage.dsn, stage.settings, agents=declared, with_worker=with_worker
    ) as service:
        yield Desk(stage=stage, service=service, wire=service.client)
    await check_waits(stage.dsn, Bank(stage.ledger.folder))


@asynccontextmanager
async def a_later_desk(
    stage: Stage,
    ahead: timedelta,
    *agents: Agent,
    **options: Any,  # noqa: ANN401 - as above
) -> AsyncGenerator[Desk]:
    """A desk at which it is later by `ahead`, for its worker as well; the database's time is not.

    Whoever goes by the database's clock, as the sweeper does, sees nothing of it.
    """
    async with a_desk(stage, *agents, with_worker=False, **options) as desk:
        runtime = _later(desk.service.runtime, ahead)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(runtime.worker.run(stop))
            try:
                async with desk.over(runtime, TOKEN) as later:
                    yield later
            finally:
                stop.set()


def _later(runtime: Runtime, ahead: timedelta) -> Runtime:
    of_now = runtime.services.clock

    def clock() -> datetime:
        return of_now() + ahead

    writer = replace(runtime.services.writer, clock=clock)
    services = replace(runtime.services, writer=writer, clock=clock)
    driver = replace(runtime.worker.driver, writer=writer)
    worker = replace(runtime.worker, driver=driver)
    return replace(runtime, services=services, worker=worker)
