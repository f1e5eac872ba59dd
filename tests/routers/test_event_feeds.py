"""Feeds beyond one turn's stream: a conversation's, pages of JSON, and streams that end early."""

from typing import Any

import httpx
import pytest

from app.services.principal import Role
from tests.http.rig import Rig, assert_problem, fresh_id
from tests.routers.test_events import events_in, opened

JSON = {"Accept": "application/json"}


async def stream(rig: Rig, path: str, place: str = "", **query: str) -> str:
    """A stream that ends by itself, whole."""
    headers = {"Last-Event-ID": place} if place else {}
    answer = await rig.client.get(path, headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return answer.text


def frames_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The ids and the events of a conversation's stream."""
    ids = [line.removeprefix("id: ") for line in text.split("\n") if line.startswith("id: ")]
    parts = [part for part in text.split("\n\n") if "data: " in part]
    bare = [
        part.replace(f"id: {i}\n", f"id: {i.partition(':')[2]}\n")
        for i, part in zip(ids, parts, strict=True)
    ]
    events = events_in("\n\n".join(bare))
    return list(zip(ids, events, strict=True))


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a conversation's stream alone."""
    return [event for _, event in frames_in(text)]


async def test_a_stream_says_at_once_how_soon_to_come_back(rig: Rig) -> None:
    turn = await rig.completed()

    text = await stream(rig, f"/turns/{turn['turnId']}/events")

    assert text.startswith("retry: 1000\n\nid: 1\n")


async def a_conversation(rig: Rig) -> tuple[str, list[dict[str, Any]]]:
    """A conversation of three turns that have ended."""
    conversation = fresh_id()
    turns = [await rig.completed(conversation), await rig.waiting(conversation)]
    await rig.post(f"/turns/{turns[1]['turnId']}/cancel")
    turns = [*turns, await rig.completed(conversation)]
    return conversation, [await rig.service.turn(turn["turnId"]) for turn in turns]


async def test_a_conversations_stream_is_that_of_its_turns_with_their_numbers_in_front(
    rig: Rig,
) -> None:
    conversation, turns = await a_conversation(rig)

    text = await stream(rig, f"/conversations/{conversation}/events", until="blocked")

    alone = [events_in(await stream(rig, f"/turns/{turn['turnId']}/events")) for turn in turns]
    expected = [
        (f"{number}:{event['eventId'].removeprefix(event['turnId'] + ':')}", event)
        for number, events in enumerate(alone, 1)
        for event in events
    ]
    assert frames_in(text) == expected
    assert [event["turnId"] for _, event in expected if event["type"] == "TURN_STARTED"] == [
        turn["turnId"] for turn in turns
    ]


async def test_a_reader_of_a_conversation_goes_on_behind_any_event(rig: Rig) -> None:
    conversation, _ = await a_conversation(rig)
    path = f"/conversations/{conversation}/events"
    whole = frames_in(await stream(rig, path, until="blocked"))

    for known, (place, _) in enumerate(whole, 1):
        rest = frames_in(await stream(rig, path, place, until="blocked"))
        assert rest == whole[known:]
    page = (await rig.client.get(path, params={"after": whole[4][0]}, headers=JSON)).json()
    assert page["items"] == [event for _, event in whole[5:]][:50]


async def test_a_conversations_stream_goes_on_with_the_turns_that_come(rig: Rig) -> None:
    conversation = fresh_id()
    first = await rig.completed(conversation)
    path = f"/conversations/{conversation}/events"
    place = f"1:{first['version']}"

    async with rig.client.stream("GET", path, headers={"Last-Event-ID": place}) as answer:
        second = await rig.completed(conversation)
        third = await rig.completed(conversation)
        text = ""
        async for piece in answer.aiter_text():
            text += piece
            if text.count("event: TURN_COMPLETED\n") == 2 and text.endswith("\n\n"):
                break

    found = frames_in(text)
    assert [event["turnId"] for _, event in found if event["type"] == "TURN_STARTED"] == [
        second["turnId"],
        third["turnId"],
    ]
    assert [i for i, event in found if event["sequence"] == 1] == ["2:1", "3:1"]


@pytest.mark.parametrize("place", ["x", "1:", "1:2:3:4", "4:1", "99", "0:5", "1:999", "1:²"])
async def test_a_place_that_a_conversation_does_not_have_is_refused(rig: Rig, place: str) -> None:
    conversation = fresh_id()
    await rig.completed(conversation)

    answer = await opened(rig, f"/conversations/{conversation}/events", place)

    assert_problem(answer, 400, "cursor_invalid")


async def test_a_conversation_of_nobody_or_of_somebody_else_has_no_events(rig: Rig) -> None:
    conversation = fresh_id()
    await rig.completed(conversation)
    async with rig.signed_in_as(Role.USER, tenant="another") as stranger:
        foreign = await stranger.get(f"/conversations/{conversation}/events")
    missing = await rig.client.get(f"/conversations/{fresh_id()}/events")

    for answer in (foreign, missing):
        assert_problem(answer, 404, "conversation_not_found")


async def test_a_stream_of_a_conversation_ends_when_that_is_deleted(rig: Rig) -> None:
    conversation = fresh_id()
    turn = await rig.completed(conversation)
    path, place = f"/conversations/{conversation}", {"after": f"1:{turn['version']}"}

    async with rig.client.stream("GET", f"{path}/events", params=place) as answer:
        await rig.client.delete(path)
        text = (await answer.aread()).decode()

    assert answer.status_code == 200
    assert events_in(text) == []


async def pages(client: httpx.AsyncClient, path: str, limit: int) -> list[list[dict[str, Any]]]:
    """All pages of a feed, as a caller turns them."""
    found: list[list[dict[str, Any]]] = []
    place: str | None = ""
    while place is not None:
        params = {"limit": str(limit)} | ({"after": place} if place else {})
        page = (await client.get(path, params=params, headers=JSON)).json()
        assert set(page) == {"items", "nextCursor", "lastEventId"}
        found.append(page["items"])
        place = page["nextCursor"]
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 200])
async def test_pages_hold_what_the_stream_holds(rig: Rig, limit: int) -> None:
    conversation, turns = await a_conversation(rig)
    for path, of_all in (
        (f"/turns/{turns[0]['turnId']}/events", events_in),
        (f"/conversations/{conversation}/events", events_of),
    ):
        whole = of_all(await stream(rig, path, until="blocked"))

        found = await pages(rig.client, path, limit)

        assert [event for page in found for event in page] == whole
        assert all(len(page) == limit for page in found[:-1])


async def test_a_page_behind_the_last_event_is_empty_and_says_nothing_of_another(rig: Rig) -> None:
    turn = await rig.completed()
    params = {"after": str(turn["version"])}

    page = await rig.client.get(f"/turns/{turn['turnId']}/events", params=params, headers=JSON)

    assert page.json() == {"items": [], "nextCursor": None, "lastEventId": None}


async def test_a_page_of_a_turn_at_work_ends_with_a_place_to_look_from_later(rig: Rig) -> None:
    turn = await rig.waiting()
    path = f"/turns/{turn['turnId']}/events"
    page = (await rig.client.get(path, headers=JSON)).json()
    assert (page["nextCursor"], page["lastEventId"]) == (None, str(turn["version"]))

    await rig.service.resume(turn["turnId"], {"failureId": turn["failureId"]})

    later = await rig.client.get(path, params={"cursor": page["lastEventId"]}, headers=JSON)
    assert later.json()["items"][0]["type"] == "TURN_RESUMED"


async def test_until_blocked_a_stream_ends_when_the_turn_waits(rig: Rig) -> None:
    waiting = await rig.waiting()
    path = f"/turns/{waiting['turnId']}/events"

    events = events_in(await stream(rig, path, until="blocked"))

    assert [event["sequence"] for event in events] == list(range(1, waiting["version"] + 1))
    assert "TURN_SUSPENDED" in [event["type"] for event in events]
    at_end = await rig.client.get(
        path, params={"until": "blocked", "after": str(waiting["version"])}
    )
    assert at_end.status_code == 204


async def test_until_blocked_a_stream_ends_when_the_turn_comes_to_wait_again(rig: Rig) -> None:
    again = {"content": "/outage quota 2\n" + fresh_id(), "agentId": "clerk"}
    headers = {"Accept": "text/event-stream"}
    path = f"/conversations/{fresh_id()}/messages?until=blocked"

    first = events_in((await rig.client.post(path, json=again, headers=headers)).text)
    turn = await rig.service.turn(first[0]["turnId"])
    resumed = await rig.client.post(
        f"/turns/{turn['turnId']}/resume?until=blocked",
        json={"failureId": turn["failureId"]},
        headers=headers,
    )

    assert turn["status"] == "WAITING_FOR_MODEL"
    assert first[-1]["sequence"] == turn["version"]
    assert events_in(resumed.text)[0]["type"] == "TURN_RESUMED"
    now = await rig.service.turn(turn["turnId"])
    assert events_in(resumed.text)[-1]["sequence"] == now["version"]


async def test_what_a_stream_shall_end_with_is_one_of_few_words(rig: Rig) -> None:
    turn = await rig.completed()

    answer = await rig.client.get(f"/turns/{turn['turnId']}/events", params={"until": "never"})

    assert answer.status_code == 422
