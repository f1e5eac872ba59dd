"""A service without a worker: turns stay in the state that a test has put them into."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from app.ports import Commit
from app.store.pool import Database, connected
from app.turn import events as e
from app.turn.agent import Agent
from app.turn.evolve import advance
from app.turn.ids import FailureId, TurnId
from app.turn.transcript import ToolCall
from tests.http.rig import Rig, fresh_id, running_rig
from tests.support.postgres import PostgresServer
from tests.support.turns import Told, an_answer

OPENING = {"content": "hello", "messageId": "m1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The service, and the database below it."""

    rig: Rig
    database: Database

    async def in_state(
        self,
        told: Told,
        *,
        client: httpx.AsyncClient | None = None,
        conversation: str | None = None,
    ) -> dict[str, Any]:
        """A turn of the client's, in a conversation of its own, that was told the same."""
        owner = client or self.rig.client
        answer = await owner.post(
            f"/conversations/{conversation or fresh_id()}/messages",
            json=OPENING | {"agentId": "clerk", "hold": told.turn.is_held},
        )
        turn_id = answer.json()["turnId"]
        turns = self.rig.service.runtime.services.turns
        turn = await turns.load(TurnId(turn_id))
        assert turn is not None
        events = [_of_its_own(event) for event in told.events[turn.version :]]
        if events:
            after = advance(turn, events)
            await turns.append(Commit(before=turn, after=after, events=events, at=told.at))
        found: dict[str, Any] = (await owner.get(f"/turns/{turn_id}")).json()
        return found

    async def goes_on(self, turn: dict[str, Any], *calls: ToolCall, agent: Agent) -> dict[str, Any]:
        """The turn as a worker goes on with it: its model asks for these calls."""
        turns = self.rig.service.runtime.services.turns
        before = await turns.load(TurnId(turn["turnId"]))
        assert before is not None
        told = Told(agent)
        told.turn, told.events = before, []
        if before.attempt_in_flight is None:
            told.begun()
        told.answered(an_answer("", *calls)).begun()
        await turns.append(
            Commit(before=before, after=told.turn, events=tuple(told.events), at=told.at)
        )
        return await self.rig.service.turn(turn["turnId"])

    async def answer(self, turn: dict[str, Any], command: str, **more: object) -> httpx.Response:
        """Send a command on the turn, as the operator who owns the conversation."""
        path = f"/turns/{turn['turnId']}/resume"
        return await self.rig.post(path, {"command": command, **more})

    async def items(self, turn: dict[str, Any], what: str) -> list[dict[str, Any]]:
        """A list that belongs to the turn."""
        answer = await self.rig.client.get(f"/turns/{turn['turnId']}/{what}")
        found: list[dict[str, Any]] = answer.json()["items"]
        return found

    async def results(self, turn: dict[str, Any]) -> list[tuple[str, str]]:
        """What the model is told of its calls, by their ids."""
        path = f"/conversations/{turn['conversationId']}/messages"
        said = (await self.rig.client.get(path)).json()["items"]
        return [(each["callId"], each["content"]) for each in said if each["role"] == "tool"]

    async def events_behind(self, turn_id: str, version: int) -> Sequence[e.Event]:
        """What has happened to a turn since then."""
        turns = self.rig.service.runtime.services.turns
        rows = await turns.journal(TurnId(turn_id), after=version, limit=100)
        return [event for row in rows for event in row.events]


def _of_its_own(event: e.Event) -> e.Event:
    """A failure's id is its own in the whole database."""
    match event:
        case e.ModelFailed(record=record):
            return replace(event, record=replace(record, failure_id=FailureId(fresh_id())))
        case _:
            return event


@pytest.fixture(scope="package")
async def stage(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Stage]:
    dsn = await postgres_server.fresh_database()
    folder = tmp_path_factory.mktemp("stage")
    async with (
        running_rig(dsn, folder, with_worker=False) as rig,
        connected(dsn, size=1) as database,
    ):
        yield Stage(rig=rig, database=database)
    await postgres_server.drop_database(dsn)
