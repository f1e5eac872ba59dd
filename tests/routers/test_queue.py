"""Messages that wait while their conversation's turn is at work, and taking them back."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from app.services.principal import Role
from tests.http.rig import Rig, assert_problem, fresh_id, unchanged


@pytest.fixture(autouse=True)
async def _nothing_is_left_at_work(rig: Rig) -> AsyncGenerator[None]:
    """A turn that never ends keeps one of the worker's hands, and its queue keeps another."""
    yield
    at_work = {"status": ["READY", "RUNNING"]}
    while turns := (await rig.client.get("/turns", params=at_work)).json()["items"]:
        for turn in turns:
            await rig.post(f"/turns/{turn['turnId']}/cancel")
            await rig.service.at_rest(turn["turnId"])


async def say(
    rig: Rig, turn: dict[str, Any], message_id: str, when: str = "queue", content: str = "and?"
) -> httpx.Response:
    return await rig.post(
        f"/conversations/{turn['conversationId']}/messages",
        {"content": content, "messageId": message_id, "whenRunning": when},
    )


async def take_back(rig: Rig, turn: dict[str, Any], message_id: str) -> httpx.Response:
    return await rig.client.delete(f"/conversations/{turn['conversationId']}/queue/{message_id}")


def waiting(turn: dict[str, Any]) -> list[tuple[str, str]]:
    return [(queued["messageId"], queued["mode"]) for queued in turn["queue"]]


async def active_turn(rig: Rig, turn: dict[str, Any]) -> dict[str, Any]:
    found = await rig.client.get(f"/conversations/{turn['conversationId']}")
    return await rig.service.turn(found.json()["activeTurn"]["turnId"])


@pytest.mark.parametrize("when", ["queue", "steer"])
async def test_a_message_to_a_turn_at_work_waits_and_is_shown(rig: Rig, when: str) -> None:
    turn = await rig.at_work()

    answer = await say(rig, turn, "m2", when)

    body = answer.json()
    assert answer.status_code == 202
    assert answer.headers["ETag"] == f'"{turn["version"] + 1}"'
    assert (body["turnId"], body["messageId"]) == (turn["turnId"], "m2")
    [queued] = body["queue"]
    at = queued["queuedAt"]
    assert queued == {"messageId": "m2", "mode": when, "queuedAt": at, "content": "and?"}
    assert (await rig.service.turn(turn["turnId"]))["queue"] == body["queue"]
    messages = await rig.client.get(f"/conversations/{turn['conversationId']}/messages")
    assert len(messages.json()["items"]) == 1


@pytest.mark.parametrize("when", ["queue", "steer"])
async def test_where_no_turn_is_at_work_the_message_opens_one(rig: Rig, when: str) -> None:
    ended = await rig.completed()

    answer = await say(rig, ended, "m2", when, content="hello")

    assert answer.status_code == 202
    assert answer.json()["turnId"] != ended["turnId"]
    assert answer.json()["queue"] == []


@pytest.mark.parametrize("when", ["queue", "steer"])
async def test_a_turn_that_waits_goes_on_with_the_message(rig: Rig, when: str) -> None:
    blocked = await rig.waiting()

    answer = await say(rig, blocked, "m2", when, content="hello")

    assert (answer.status_code, answer.json()["turnId"]) == (202, blocked["turnId"])
    assert answer.json()["queue"] == []


async def test_a_queued_message_sent_again_is_answered_with_the_turn_that_has_it(rig: Rig) -> None:
    turn = await rig.at_work()
    first = await say(rig, turn, "m2")

    again = await say(rig, turn, "m2", "reject")
    other = await say(rig, turn, "m2", content="something else")

    assert again.status_code == 202
    assert again.json()["turnId"] == turn["turnId"]
    assert_problem(other, 422, "payload_invalid")
    assert (await rig.service.turn(turn["turnId"]))["version"] == first.json()["version"]


async def test_one_message_queued_five_times_at_once_waits_once(rig: Rig) -> None:
    turn = await rig.at_work()

    answers = await asyncio.gather(*(say(rig, turn, "m2") for _ in range(5)))

    assert {answer.status_code for answer in answers} == {202}
    assert waiting(await rig.service.turn(turn["turnId"])) == [("m2", "queue")]


async def test_many_messages_at_once_all_wait_until_the_queue_is_full(rig: Rig) -> None:
    turn = await rig.at_work()
    for n in range(18):
        assert (await say(rig, turn, f"q{n}")).status_code == 202

    answers = await asyncio.gather(*(say(rig, turn, f"r{n}") for n in range(4)))

    full = await rig.service.turn(turn["turnId"])
    assert sorted(answer.status_code for answer in answers) == [202, 202, 409, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert "20 messages" in assert_problem(refused, 409, "conversation_busy")["detail"]
    assert len(full["queue"]) == 20
    offered = {action["command"]: action for action in full["actions"]}
    assert offered["QUEUE"] == {"command": "QUEUE", "enabled": False, "reason": "queue_full"}


async def test_a_message_that_will_not_wait_is_told_that_it_could(rig: Rig) -> None:
    turn = await rig.at_work()

    answer = await say(rig, turn, "m2", "reject")

    allowed = assert_problem(answer, 409, "conversation_busy")["allowedActions"]
    assert [action["command"] for action in allowed if action["enabled"]] == [
        "PAUSE",
        "CANCEL",
        "QUEUE",
        "STEER",
    ]


async def test_a_withdrawn_message_is_gone_and_its_id_stays_taken(rig: Rig) -> None:
    turn = await rig.at_work()
    await say(rig, turn, "m2")
    await say(rig, turn, "m3", "steer")

    answer = await take_back(rig, turn, "m2")
    second = await take_back(rig, turn, "m2")
    again = await say(rig, turn, "m2")

    assert answer.status_code == 200
    assert answer.headers["ETag"] == f'"{answer.json()["version"]}"'
    assert answer.headers["Location"] == f"/turns/{turn['turnId']}"
    assert waiting(answer.json()) == [("m3", "steer")]
    problem = assert_problem(second, 404, "queued_input_not_found")
    assert problem["currentVersion"] == answer.json()["version"]
    assert again.status_code == 202
    assert waiting(again.json()) == [("m3", "steer")]


async def test_what_is_in_no_queue_cannot_be_withdrawn(rig: Rig, still: dict[str, Any]) -> None:
    turn, ended = await rig.at_work(), await rig.completed()

    for where, message_id in ((turn, "m9"), (ended, ended["messageId"]), (still, "x")):
        answer = await take_back(rig, where, message_id)
        assert_problem(answer, 404, "queued_input_not_found")
    nowhere = await rig.client.delete(f"/conversations/{fresh_id()}/queue/m2")
    assert_problem(nowhere, 404, "conversation_not_found")
    assert_problem(await take_back(rig, turn, "a%20b"), 422, "payload_invalid")
    assert await unchanged(rig, still)


async def test_nobody_withdraws_what_is_not_theirs(rig: Rig) -> None:
    turn = await rig.at_work()
    path = f"/conversations/{turn['conversationId']}/queue/m2"
    queued = (await say(rig, turn, "m2")).json()

    async with rig.signed_in_as(Role.USER, actor="somebody") as stranger:
        assert_problem(await stranger.delete(path), 404, "conversation_not_found")
    async with rig.signed_in_as(Role.OPERATOR, tenant="another") as foreigner:
        assert_problem(await foreigner.delete(path), 404, "conversation_not_found")
    async with rig.signed_in_as(Role.VIEWER) as viewer:
        assert_problem(await viewer.delete(path), 403, "forbidden")

    assert (await rig.service.turn(turn["turnId"]))["queue"] == queued["queue"]


async def test_every_withdrawal_leaves_one_row(rig: Rig) -> None:
    turn, r = await rig.at_work(), [fresh_id(), fresh_id()]
    await say(rig, turn, "m2")

    for request_id in r:
        await rig.client.delete(
            f"/conversations/{turn['conversationId']}/queue/m2",
            headers={"X-Request-Id": request_id},
        )

    rows = await rig.rows(
        "SELECT action, outcome, code, conversation_id FROM audit "
        "WHERE request_id = ANY($1::text[]) ORDER BY seq",
        r,
    )
    common = {"action": "WITHDRAW_INPUT", "conversation_id": turn["conversationId"]}
    assert rows == [
        common | {"outcome": "accepted", "code": None},
        common | {"outcome": "refused", "code": "queued_input_not_found"},
    ]


async def test_a_cancelled_turn_hands_its_queue_on_in_order_turn_after_turn(rig: Rig) -> None:
    turn = await rig.at_work()
    for message_id, when in (("m2", "queue"), ("m3", "steer"), ("m4", "queue")):
        assert (await say(rig, turn, message_id, when)).status_code == 202
    opened: list[str] = []

    for left in (["m3", "m4"], ["m4"], []):
        await rig.post(f"/turns/{turn['turnId']}/cancel")
        ended = await rig.service.at_rest(turn["turnId"])
        turn = await active_turn(rig, turn)
        again = await say(rig, turn, f"m{2 + len(opened)}")
        assert (ended["status"], ended["queue"]) == ("CANCELLED", [])
        assert waiting(turn) == [(message_id, "queue") for message_id in left]
        assert again.json()["turnId"] == turn["turnId"]
        opened.append(turn["turnId"])

    assert len(set(opened)) == 3
    messages = await rig.client.get(f"/conversations/{turn['conversationId']}/messages")
    said = [m["messageId"] for m in messages.json()["items"] if m["role"] == "user"]
    assert said[1:] == ["m2", "m3", "m4"]
    events = (await rig.client.get(f"/turns/{opened[0]}/events")).text
    assert events.index("event: TURN_STARTED") < events.index("event: INPUT_PROMOTED")
    assert events.index("event: INPUT_PROMOTED") < events.index("event: MESSAGE_ADDED")
    await rig.post(f"/turns/{turn['turnId']}/cancel")


async def test_a_message_that_was_handed_on_is_withdrawn_from_where_it_is_now(rig: Rig) -> None:
    turn = await rig.at_work()
    await say(rig, turn, "m2")
    await say(rig, turn, "m3")
    await rig.post(f"/turns/{turn['turnId']}/cancel")
    await rig.service.at_rest(turn["turnId"])

    said = await take_back(rig, turn, "m2")
    taken = await take_back(rig, turn, "m3")

    assert_problem(said, 404, "queued_input_not_found")
    assert (taken.status_code, taken.json()["queue"]) == (200, [])
    assert taken.json()["turnId"] != turn["turnId"]
    await rig.post(f"/turns/{taken.json()['turnId']}/cancel")


async def test_the_events_tell_of_the_queue(rig: Rig) -> None:
    turn = await rig.at_work()
    await say(rig, turn, "m2")
    await take_back(rig, turn, "m2")
    await rig.post(f"/turns/{turn['turnId']}/cancel")

    answer = await rig.client.get(f"/turns/{turn['turnId']}/events?after={turn['version']}")

    types = [line[7:] for line in answer.text.splitlines() if line.startswith("event: ")]
    assert types[:3] == ["INPUT_QUEUED", "INPUT_WITHDRAWN", "CANCELLATION_REQUESTED"]
