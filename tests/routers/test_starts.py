"""`POST /conversations/{id}/turns` and `POST /turns`: opening a turn, and nothing else."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.services.principal import Role
from tests.http.rig import Rig, assert_problem, fresh_id, running_rig, unchanged

HELLO = {"content": "hello", "agentId": "clerk"}


async def turns_of(rig: Rig, conversation: str) -> list[str]:
    found = await rig.client.get("/turns", params={"conversationId": conversation})
    return [turn["turnId"] for turn in found.json()["items"]]


async def test_a_start_opens_a_turn_as_a_message_does(rig: Rig) -> None:
    conversation, message = fresh_id(), fresh_id()

    answer = await rig.post(
        f"/conversations/{conversation}/turns", HELLO | {"messageId": message}, Prefer="wait=20"
    )

    body = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/turns/{body['turnId']}"
    assert answer.headers["ETag"] == f'"{body["version"]}"'
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert (body["status"], body["conversationId"]) == ("COMPLETED", conversation)
    assert body["messageId"] == message
    assert body["eventsUrl"] == f"/turns/{body['turnId']}/events?after=0"


async def test_a_start_follows_a_turn_that_has_ended(rig: Rig) -> None:
    ended = await rig.completed()

    answer = await rig.post(f"/conversations/{ended['conversationId']}/turns", {"content": "more"})

    assert answer.status_code == 202
    assert await turns_of(rig, ended["conversationId"]) == [
        answer.json()["turnId"],
        ended["turnId"],
    ]


async def test_a_start_may_be_answered_with_its_events(rig: Rig) -> None:
    for path in (f"/conversations/{fresh_id()}/turns", "/turns"):
        answer = await rig.post(path, HELLO, Accept="text/event-stream")

        types = [line[7:] for line in answer.text.splitlines() if line.startswith("event: ")]
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert (types[0], types[-1]) == ("TURN_STARTED", "TURN_COMPLETED")


async def test_a_start_is_in_the_way_of_no_active_turn_a_waiting_one_included(
    rig: Rig, still: dict[str, Any]
) -> None:
    path = f"/conversations/{still['conversationId']}/turns"

    for said in ({"content": "x"}, HELLO, HELLO | {"hold": True}, HELLO | {"agentId": "patient"}):
        busy = assert_problem(await rig.post(path, said), 409, "conversation_busy")

        assert busy["turnId"] == still["turnId"]
        assert busy["conversationId"] == still["conversationId"]
        assert busy["currentStatus"] == "WAITING_FOR_MODEL"
        assert busy["allowedActions"] == still["actions"]
    assert await unchanged(rig, still)


async def test_a_start_while_the_turn_is_at_work_finds_it_busy(rig: Rig) -> None:
    running = await rig.running()

    answer = await rig.post(f"/conversations/{running['conversationId']}/turns", {"content": "x"})

    assert assert_problem(answer, 409, "conversation_busy")["turnId"] == running["turnId"]


async def test_a_known_message_is_answered_with_its_turn_before_anything_else(rig: Rig) -> None:
    waiting = await rig.waiting()
    path = f"/conversations/{waiting['conversationId']}/turns"
    said = (await rig.client.get(path.replace("turns", "messages"))).json()["items"][0]

    again = await rig.post(path, {"content": said["content"], "messageId": said["messageId"]})
    reused = await rig.post(path, {"content": "another", "messageId": said["messageId"]})

    assert again.status_code == 202
    assert (again.json()["turnId"], again.json()["version"]) == (
        waiting["turnId"],
        waiting["version"],
    )
    assert_problem(reused, 422, "payload_invalid")


async def test_case_12_of_two_starts_at_once_one_opens_the_turn(rig: Rig) -> None:
    conversation = fresh_id()
    path = f"/conversations/{conversation}/turns"

    answers = await asyncio.gather(
        *(rig.post(path, {"content": f"{n}", "agentId": "mute"}) for n in range(2))
    )

    [taken] = [answer for answer in answers if answer.status_code == 202]
    [refused] = [answer for answer in answers if answer.status_code != 202]
    busy = assert_problem(refused, 409, "conversation_busy")
    assert [busy["turnId"]] == [taken.json()["turnId"]] == await turns_of(rig, conversation)


async def test_a_turn_without_a_conversation_is_given_a_new_one_each_time(rig: Rig) -> None:
    answers = [await rig.post("/turns", HELLO, Prefer="wait=20") for _ in range(2)]

    turns = [answer.json() for answer in answers]
    assert {answer.status_code for answer in answers} == {202}
    assert {turn["status"] for turn in turns} == {"COMPLETED"}
    assert len({turn["conversationId"] for turn in turns}) == 2
    found = await rig.client.get(f"/conversations/{turns[0]['conversationId']}")
    assert found.json()["lastTurn"]["turnId"] == turns[0]["turnId"]
    assert (found.json()["agentId"], found.json()["title"]) == ("clerk", "hello")


async def test_the_same_message_without_a_conversation_opens_one_turn(rig: Rig) -> None:
    said = HELLO | {"messageId": fresh_id()}

    at_once = await asyncio.gather(*(rig.post("/turns", said) for _ in range(5)))
    later = await rig.post("/turns", said, Prefer="wait=20")
    reused = await rig.post("/turns", said | {"content": "another"})
    async with rig.signed_in_as(Role.USER, actor=fresh_id()) as user:
        of_another = await user.post("/turns", json=said)

    assert {answer.status_code for answer in (*at_once, later)} == {202}
    assert len({answer.json()["turnId"] for answer in (*at_once, later)}) == 1
    assert_problem(reused, 422, "payload_invalid")
    assert of_another.status_code == 202
    assert of_another.json()["conversationId"] != later.json()["conversationId"]


async def test_starts_with_a_key_open_one_turn_even_without_a_message_id(rig: Rig) -> None:
    for path in ("/turns", f"/conversations/{fresh_id()}/turns"):
        key = fresh_id()

        answers = await asyncio.gather(
            *(rig.post(path, HELLO, Idempotency_Key=key) for _ in range(5))
        )

        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.content for answer in answers}) == 1
        assert len(await turns_of(rig, answers[0].json()["conversationId"])) == 1


async def test_a_start_of_an_unknown_agent_makes_no_conversation(rig: Rig) -> None:
    before = await rig.rows("SELECT count(*) FROM conversations")

    for path in ("/turns", f"/conversations/{fresh_id()}/turns"):
        answer = await rig.post(path, {"content": "hi", "agentId": "nobody"})
        assert_problem(answer, 422, "payload_invalid")

    assert await rig.rows("SELECT count(*) FROM conversations") == before


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "messages_required"),
        ({"content": " "}, "payload_invalid"),
        ({"content": "x", "hold": 1}, "payload_invalid"),
        ({"content": "x", "hold": "true"}, "payload_invalid"),
        ({"content": "x", "hold": None}, "payload_invalid"),
        ({"content": "x", "conversationId": "c"}, "payload_invalid"),
    ],
)
async def test_what_cannot_be_opens_nothing(rig: Rig, body: object, code: str) -> None:
    before = await rig.rows("SELECT count(*) FROM turns")

    for path in ("/turns", f"/conversations/{fresh_id()}/turns"):
        assert_problem(await rig.post(path, body), 422, code)

    assert await rig.rows("SELECT count(*) FROM turns") == before


async def test_case_135_in_an_empty_store_there_is_nothing_to_go_on_with(
    database_dsn: str, tmp_path: Path
) -> None:
    async with running_rig(database_dsn, tmp_path, with_worker=False) as rig:
        for path, body in (
            ("/turns/t/run", None),
            ("/turns/t/resume", {"command": "RESUME"}),
            ("/turns/t/resume", {"failureId": "f"}),
            ("/turns/t/resume", {"command": "REPLAN_WITH_MESSAGE", "message": {"content": "x"}}),
        ):
            assert_problem(await rig.post(path, body), 404, "turn_not_found")

        assert await rig.rows("SELECT 1 FROM turns UNION ALL SELECT 1 FROM conversations") == []
