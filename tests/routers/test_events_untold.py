"""What was stored by a process that died before it told anybody, and a listener that was lost."""

import asyncio

from app.ports import Commit
from app.turn.evolve import advance
from app.turn.ids import TurnId
from tests.routers.stage import Stage
from tests.routers.test_events import events_in
from tests.support.polling import eventually
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
