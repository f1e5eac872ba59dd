"""What was stored by a process that died before it told anybody, and a listener that was lost."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx

from app.entrypoints.api import create_app
from app.entrypoints.wiring import Runtime
from app.ports import Commit
from app.turn.evolve import advance
from app.turn.ids import TurnId
from tests.routers.stage import Stage
from tests.routers.test_events import events_in
from tests.support.polling import eventually
from tests.support.service import TOKEN
from tests.support.turns import QUOTA, Told


async def test_case_141_what_was_saved_and_never_told_of_reaches_readers_under_its_ids(
    stage: Stage,
) -> None:
    turn = await stage.in_state(Told())
    path = f"/turns/{turn['turnId']}/events?after={turn['version']}&until=blocked"
    turns = stage.rig.service.runtime.services.turns
    before = await turns.load(TurnId(turn["turnId"]))
    assert before is not None
    told = Told().begun().gave_up(QUOTA)
    events = tuple(told.events[before.version :])
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(stage.rig.client.get(path))
        journals = stage.rig.service.runtime.services.journals

        async def is_followed() -> bool:
            return not journals.is_idle

        await eventually(is_followed)
        after = advance(before, events)
        await turns.append(Commit(before=before, after=after, events=events, at=told.at))

    again = await stage.rig.client.get(path)
    assert [event["sequence"] for event in events_in(reading.result().text)] == list(
        range(before.version + 1, after.version + 1)
    )
    assert again.text == reading.result().text


async def test_a_listener_that_is_lost_is_replaced_and_hears_again(stage: Stage) -> None:
    listening = """
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'LISTEN%'
    """
    [lost] = await stage.rig.rows(listening)

    await stage.rig.rows("SELECT pg_terminate_backend($1)", lost["pid"])

    async def another_one() -> bool:
        found = await stage.rig.rows(listening)
        return len(found) == 1 and found != [lost]

    await eventually(another_one)


async def test_case_139_a_listener_that_fails_costs_no_turn_anything_and_no_reader_an_event(
    stage: Stage,
) -> None:
    runtime = stage.rig.service.runtime
    heard: list[int] = []

    def broken(commit: Commit) -> None:
        heard.append(commit.after.version)
        raise RuntimeError("the pager does not answer")

    writer = replace(runtime.services.writer, listeners=(broken, broken))
    services = replace(runtime.services, writer=writer)
    async with served(replace(runtime, services=services)) as client:
        turn = await stage.in_state(Told().begun().gave_up(QUOTA))
        body = {"failureId": turn["failureId"]}
        answer = await client.post(f"/turns/{turn['turnId']}/resume", json=body)
        cancelled = await client.post(f"/turns/{turn['turnId']}/cancel")
    read = await stage.rig.client.get(
        f"/turns/{turn['turnId']}/events?after={turn['version']}",
        headers={"Accept": "application/json"},
    )

    assert answer.status_code == 202, answer.text
    assert cancelled.status_code in {200, 202}, cancelled.text
    assert len(heard) == 4, "each of the two is told of each of the two changes"
    assert [event["sequence"] for event in read.json()["items"]] == list(
        range(turn["version"] + 1, cancelled.json()["version"] + 1)
    )


@asynccontextmanager
async def served(runtime: Runtime) -> AsyncGenerator[httpx.AsyncClient]:
    """The API of such a process."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=create_app(runtime)),
        base_url="http://turnkeeper",
        headers={"Authorization": f"Bearer {TOKEN}"},
    ) as client:
        yield client
