"""`GET /turns/{id}/events`: replay, then live, each event once."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.http.rig import Rig, assert_problem, fresh_id

_ENVELOPE = {
    "eventId",
    "turnId",
    "conversationId",
    "agentId",
    "agentVersion",
    "sequence",
    "type",
    "occurredAt",
    "data",
}


def events_in(stream: str) -> list[dict[str, Any]]:
    """The events of a whole stream; each frame's id and event agree with what it holds."""
    found: list[dict[str, Any]] = []
    for frame in stream.split("\n\n"):
        lines = [
            line for line in frame.split("\n") if line and not line.startswith((":", "retry: "))
        ]
        if not lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines)
        assert set(fields) == {"id", "event", "data"}
        event: dict[str, Any] = json.loads(fields["data"])
        assert event["type"] == fields["event"]
        assert event["eventId"] == f"{event['turnId']}:{fields['id']}"
        assert int(fields["id"].split(":")[0]) == event["sequence"]
        found.append(event)
    return found


async def opened(rig: Rig, path: str, place: str, *, by: str = "after") -> httpx.Response:
    """How a stream begins; what is no stream is read whole, since an open one would never end."""
    headers = {"Last-Event-ID": place} if by == "header" else {}
    params = {"after": place} if by == "after" else {}
    async with rig.client.stream("GET", path, headers=headers, params=params) as answer:
        if not answer.headers.get("Content-Type", "").startswith("text/event-stream"):
            await answer.aread()
        return answer


async def test_a_stream_holds_every_event_once_in_order_and_ends_with_the_turn(rig: Rig) -> None:
    turn = await rig.completed()

    answer = await rig.client.get(f"/turns/{turn['turnId']}/events")

    events = events_in(answer.text)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert all(set(event) == _ENVELOPE for event in events)
    assert [event["sequence"] for event in events] == list(range(1, turn["version"] + 1))
    assert events[0]["type"] == "TURN_STARTED"
    assert events[-1]["type"] == "TURN_COMPLETED"
    assert {event["conversationId"] for event in events} == {turn["conversationId"]}


async def test_a_reader_gets_only_what_is_behind_its_place(rig: Rig) -> None:
    turn = await rig.completed()
    path = f"/turns/{turn['turnId']}/events"
    whole = events_in((await rig.client.get(path)).text)

    for place in range(turn["version"]):
        by_query = await rig.client.get(path, params={"after": place})
        by_header = await rig.client.get(
            path, params={"after": 0}, headers={"Last-Event-ID": str(place)}
        )

        assert events_in(by_query.text) == [e for e in whole if e["sequence"] > place]
        assert place == 0 or by_header.text == by_query.text


async def test_a_reader_that_has_all_of_an_ended_turn_is_told_to_stop(rig: Rig) -> None:
    turn = await rig.completed()
    path = f"/turns/{turn['turnId']}/events"

    by_header = await opened(rig, path, str(turn["version"]), by="header")
    by_query = await opened(rig, path, str(turn["version"]))

    assert (by_header.status_code, by_query.status_code) == (204, 204)
    assert by_header.content == b""


async def test_a_stream_of_a_waiting_turn_stays_open_and_goes_on_with_it(rig: Rig) -> None:
    waiting = await rig.waiting()
    path = f"/turns/{waiting['turnId']}/events?after={waiting['version']}"

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(rig.client.get(path))
        await rig.service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})

    types = [event["type"] for event in events_in(reading.result().text)]
    assert types[0] == "TURN_RESUMED"
    assert types[-1] == "TURN_COMPLETED"


async def test_the_events_url_of_a_message_starts_with_what_it_brought(rig: Rig) -> None:
    waiting = await rig.waiting()
    posted = await rig.service.send(waiting["conversationId"], "Never mind.")

    answer = await rig.client.get(posted["eventsUrl"])

    types = [event["type"] for event in events_in(answer.text)]
    assert types[:2] == ["MESSAGE_ADDED", "TURN_RESUMED"]


async def test_text_is_rebuilt_whole_by_a_reader_that_is_cut_at_every_event(rig: Rig) -> None:
    turn = await rig.service.send(fresh_id(), "/help", agentId="clerk")
    path = f"/turns/{turn['turnId']}/events"
    place, text, seen = "0", "", 0

    while place != str(turn["version"]):
        async with rig.client.stream("GET", path, headers={"Last-Event-ID": place}) as answer:
            frame = ""
            async for line in answer.aiter_lines():
                frame += f"{line}\n"
                if not line and "data:" in frame:
                    break
        [event] = events_in(frame)
        place = event["eventId"].rpartition(event["turnId"])[2].lstrip(":")
        seen += 1
        if event["type"] == "MODEL_TEXT":
            assert event["data"]["offset"] == len(text)
            text += event["data"]["text"]

    assert text == turn["finalOutput"]
    assert seen >= turn["version"]


ODD_PLACES = ["x", "-1", "1.5", "1:", ":1", "1:2:3", "0x1", "9999999999", "1:9999999999", "1 ", "²"]


@pytest.mark.parametrize("place", ODD_PLACES)
async def test_a_place_that_is_none_is_refused(rig: Rig, still: dict[str, Any], place: str) -> None:
    answer = await opened(rig, f"/turns/{still['turnId']}/events", place)

    assert_problem(answer, 400, "cursor_invalid")


async def test_a_place_that_is_still_to_come_is_refused(rig: Rig, still: dict[str, Any]) -> None:
    path = f"/turns/{still['turnId']}/events"

    answer = await opened(rig, path, str(still["version"] + 1), by="header")

    assert_problem(answer, 400, "cursor_invalid")


async def test_a_place_beyond_the_text_that_is_stored_is_no_error(rig: Rig) -> None:
    turn = await rig.completed()

    answer = await rig.client.get(f"/turns/{turn['turnId']}/events", params={"after": "1:99999"})

    assert events_in(answer.text)[-1]["type"] == "TURN_COMPLETED"


async def test_the_events_of_a_turn_that_is_not_there_are_a_problem_and_no_stream(
    rig: Rig,
) -> None:
    answer = await rig.client.get(
        "/turns/turn_nobody/events", headers={"Accept": "text/event-stream"}
    )

    assert_problem(answer, 404, "turn_not_found")
