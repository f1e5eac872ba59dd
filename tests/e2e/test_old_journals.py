"""Old turns: folded and pruned by the housekeeper, and still right for every reader."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from app.store.feeds import PostgresFeeds
from app.store.pool import connected
from app.turn.ids import TurnId
from app.workers.housekeeper import Housekeeper
from tests.e2e.conftest import Stage
from tests.e2e.test_event_streams import LONG_ANSWER, LONGEST, SLOW_ANSWER, replica, the_only_turn
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.support.service import Service
from tests.support.sse_reader import TurnReader, check_reading
from tests.support.story import MODEL, QUOTA, THREE_CALLS

SOON = timedelta(0)
LATER = timedelta(days=30)


async def tidied(
    stage: Stage, service: Service, *, fold: timedelta = SOON, keep: timedelta | None = None
) -> None:
    """What the housekeeper does once so much time has passed, and the process remembers nothing."""
    turn_id = TurnId(str(await query(stage.dsn, "SELECT turn_id FROM turns")))

    async def is_forgotten() -> bool:
        return not service.runtime.services.recent.behind(turn_id, 0)

    await eventually(is_forgotten)
    async with connected(stage.dsn, size=1) as database:
        await Housekeeper(
            upkeep=PostgresFeeds(database),
            clock=lambda: service.runtime.services.clock() + timedelta(seconds=1),
            fold_after=fold,
            keep_events=keep,
            turns_at_once=1,
        ).tidy()


async def an_old_turn(stage: Stage, service: Service) -> dict[str, Any]:
    """A turn with two long answers and an outage, which has ended."""
    outage = SLOW_ANSWER | {"faults": [QUOTA]}
    stage.provider.script(MODEL, [THREE_CALLS, outage])
    waiting = await service.send("ses_1", "Do it.", agentId="clerk")
    await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
    return await service.turn(waiting["turnId"])


async def rows_of(stage: Stage) -> int:
    return int(await query(stage.dsn, "SELECT count(*) FROM turn_events"))


async def test_a_folded_turn_has_fewer_rows_and_the_same_text_for_every_reader(
    stage: Stage,
) -> None:
    async with replica(stage) as service:
        turn = await an_old_turn(stage, service)
        early = TurnReader(service.client, turn["turnId"])
        await early.read(until=lambda event: event["data"].get("offset", 0) > 3_000)
        whole = (await the_only_turn(stage)).journal
        before = await rows_of(stage)

        await tidied(stage, service)

        assert await rows_of(stage) < before
        readers = [TurnReader(service.client, turn["turnId"]) for _ in range(12)]
        for seed, reader in enumerate(readers):
            await reader.read_cut_at_random(Random(seed), longest=LONGEST)  # noqa: S311
        await early.read_to_the_end()

    for reader in (*readers, early):
        check_reading(reader.received, whole)
        answers = [e["data"]["text"] for e in reader.received if e["type"] == "MODEL_COMPLETED"]
        assert answers[-1] == LONG_ANSWER


async def test_a_turn_is_not_folded_before_its_time(stage: Stage) -> None:
    async with replica(stage) as service:
        await an_old_turn(stage, service)
        before = await rows_of(stage)

        await tidied(stage, service, fold=LATER, keep=LATER)

        assert await rows_of(stage) == before


async def test_a_turn_that_has_not_ended_keeps_its_events_however_old(stage: Stage) -> None:
    async with replica(stage) as service:
        stage.provider.script(MODEL, [THREE_CALLS, {"text": "Done.", "faults": [QUOTA]}])
        waiting = await service.send("ses_1", "Do it.", agentId="clerk")
        assert waiting["status"] == "WAITING_FOR_MODEL"
        before = await rows_of(stage)

        await tidied(stage, service, keep=SOON)

        assert await rows_of(stage) == before


@pytest.mark.parametrize("place", [0, 1, 10])
async def test_reported_067_a_reader_of_pruned_history_is_told_so_first_and_then_of_the_end(
    stage: Stage, place: int
) -> None:
    async with replica(stage) as service:
        turn = await an_old_turn(stage, service)
        path = f"/turns/{turn['turnId']}/events"
        pages = {"Accept": "application/json"}
        everything = (await service.client.get(f"{path}?limit=200", headers=pages)).json()["items"]

        await tidied(stage, service, keep=SOON)

        reader = TurnReader(service.client, turn["turnId"], last_id=str(place) if place else "")
        await reader.read_to_the_end()
        page = (await service.client.get(f"{path}?after={place}", headers=pages)).json()["items"]
        told = await service.turn(turn["turnId"])
        of_conversation = await service.client.get("/conversations/ses_1/events", headers=pages)

    snapshot, *rest = reader.received
    assert (snapshot["type"], snapshot["sequence"]) == (
        "SNAPSHOT",
        snapshot["data"]["prunedThrough"],
    )
    assert snapshot["data"]["turn"] == told
    pieces = [event["data"] for event in rest if event["type"] == "MODEL_TEXT"]
    assert "".join(piece["text"] for piece in pieces) == LONG_ANSWER
    known = {event["eventId"]: event for event in everything}
    of_text = {"MODEL_TEXT", "MODEL_REASONING"}
    the_end = [event for event in rest if event["type"] not in of_text]
    assert [known[event["eventId"]] | {"id": event["id"]} for event in the_end] == the_end
    assert rest[-1]["sequence"] == turn["version"]
    assert page == [{k: v for k, v in event.items() if k != "id"} for event in reader.received]
    assert of_conversation.json()["items"] == page


async def test_a_reader_behind_what_was_pruned_is_told_of_nothing_but_the_rest(
    stage: Stage,
) -> None:
    async with replica(stage) as service:
        turn = await an_old_turn(stage, service)
        await tidied(stage, service, keep=SOON)
        reader = TurnReader(service.client, turn["turnId"], last_id=str(turn["version"] - 1))

        await reader.read_to_the_end()

    assert [event["sequence"] for event in reader.received] == [turn["version"]]


async def test_a_turn_of_one_commit_has_nothing_to_prune(stage: Stage) -> None:
    async with replica(stage, with_worker=False) as service:
        sent = await service.send("ses_1", "Go.", wait=0, agentId="clerk")
        await service.client.post(f"/turns/{sent['turnId']}/cancel")
        await query(
            stage.dsn,
            "DELETE FROM turn_events WHERE sequence < (SELECT max(sequence) FROM turn_events)",
        )
        await query(
            stage.dsn,
            "UPDATE turn_events SET sequence = json_array_length(events::json)",
        )

        await tidied(stage, service, keep=SOON)

        path = f"/turns/{sent['turnId']}/events"
        page = await service.client.get(path, headers={"Accept": "application/json"})
    assert "SNAPSHOT" not in [event["type"] for event in page.json()["items"]]
    assert await query(stage.dsn, "SELECT pruned_through FROM turns") == -1
