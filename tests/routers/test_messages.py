"""`/conversations/{id}/messages`: saying something, and reading what was said."""

import asyncio
from typing import Any

import httpx
import pytest

from app.routers.message_schemas import MessageBody
from app.turn.transcript import TextPart
from tests.http.rig import Rig, assert_problem, fresh_id, outage, unchanged
from tests.routers.test_conversations import page_of


async def test_a_message_opens_a_turn_and_is_answered_at_once(rig: Rig) -> None:
    conversation, message = fresh_id(), fresh_id()

    answer = await rig.post(
        f"/conversations/{conversation}/messages",
        {"content": "hello", "messageId": message, "agentId": "clerk"},
        X_Request_Id="req-17",
    )

    body = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/turns/{body['turnId']}"
    assert answer.headers["ETag"] == f'"{body["version"]}"'
    assert answer.headers["X-Request-Id"] == "req-17"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Preference-Applied" not in answer.headers
    assert body["messageId"] == message
    assert body["conversationId"] == conversation
    assert body["eventsUrl"] == f"/turns/{body['turnId']}/events?after=0"


async def test_prefer_wait_answers_when_the_turn_rests(rig: Rig) -> None:
    answer = await rig.post(
        f"/conversations/{fresh_id()}/messages",
        {"content": "hello", "agentId": "clerk"},
        Prefer="wait=20",
    )

    assert answer.status_code == 202
    assert answer.json()["status"] == "COMPLETED"
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert answer.headers["ETag"] == f'"{answer.json()["version"]}"'


async def test_prefer_wait_answers_when_the_time_is_over(rig: Rig) -> None:
    async with asyncio.timeout(15):
        answer = await rig.post(
            f"/conversations/{fresh_id()}/messages",
            {"content": "hello", "agentId": "mute"},
            Prefer="wait=1",
        )

    assert answer.status_code == 202
    assert answer.json()["status"] == "RUNNING"


async def test_a_server_made_message_id_is_given_back(rig: Rig) -> None:
    turn = await rig.completed()

    found = await rig.client.get(f"/conversations/{turn['conversationId']}/messages")

    assert found.json()["items"][0]["messageId"] == turn["messageId"]


async def test_case_6_a_repeated_message_is_answered_with_the_turn_that_took_it(
    rig: Rig,
) -> None:
    conversation = fresh_id()
    said = {"content": "hello", "messageId": "m1"}
    first = await rig.service.send(conversation, agentId="clerk", text="hello", messageId="m1")

    again = await rig.post(f"/conversations/{conversation}/messages", said)
    while_waiting = await rig.service.send(conversation, outage("quota"), messageId="m2")
    once_more = await rig.post(f"/conversations/{conversation}/messages", said)

    assert (again.status_code, once_more.status_code) == (202, 202)
    assert again.json() == once_more.json() == first
    assert while_waiting["turnId"] != first["turnId"]


async def test_the_answer_to_a_known_message_says_that_it_is_a_replay(rig: Rig) -> None:
    path, said = f"/conversations/{fresh_id()}/messages", {"content": "hello", "messageId": "m1"}

    first = await rig.post(path, said, Prefer="wait=20")
    again = await rig.post(path, said)
    events = await rig.post(path, said, Accept="text/event-stream")
    under_a_key = await rig.post(path, said, Prefer="wait=20", Idempotency_Key=fresh_id())
    foreseen = await rig.post(f"{path}?dryRun=true", said)

    replays = [each.headers.get_list("Idempotency-Replayed") for each in (again, events)]
    assert replays == [["true"], ["true"]]
    assert under_a_key.headers.get_list("Idempotency-Replayed") == ["true"]
    assert "Idempotency-Replayed" not in first.headers
    assert (foreseen.json()["effect"], "Idempotency-Replayed" in foreseen.headers) == (
        "KNOWN",
        False,
    )


async def test_a_known_message_under_a_key_is_marked_once_however_often_it_is_sent(
    rig: Rig,
) -> None:
    path, said = f"/conversations/{fresh_id()}/messages", {"content": "hello", "messageId": "m1"}
    key = fresh_id()

    await rig.post(path, said, Prefer="wait=20")
    first = await rig.post(path, said, Prefer="wait=20", Idempotency_Key=key)
    again = await rig.post(path, said, Prefer="wait=20", Idempotency_Key=key)

    assert again.json() == first.json()
    assert again.headers.get_list("Idempotency-Replayed") == ["true"]


async def test_a_replan_whose_message_is_known_is_a_replay(rig: Rig) -> None:
    turn = await rig.scheduled()
    message = {"content": "Never mind.", "messageId": fresh_id()}
    path = f"/turns/{turn['turnId']}/resume"
    replan = {"command": "REPLAN_WITH_MESSAGE", "message": message}

    first = await rig.post(path, replan)
    again = await rig.post(path, replan)

    assert (first.status_code, again.status_code) == (202, 202)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_case_1_a_message_to_a_waiting_turn_is_there_once_however_often_it_is_sent(
    rig: Rig,
) -> None:
    scheduled = await rig.scheduled()
    conversation = scheduled["conversationId"]
    said = {"content": "Never mind.", "messageId": "m2"}

    first = await rig.post(f"/conversations/{conversation}/messages", said, Prefer="wait=20")
    again = await rig.post(f"/conversations/{conversation}/messages", said, Prefer="wait=20")

    assert first.json()["turnId"] == again.json()["turnId"] == scheduled["turnId"]
    assert again.json()["version"] == first.json()["version"]
    found = await rig.client.get(f"/conversations/{conversation}/messages")
    ids = [item["messageId"] for item in found.json()["items"] if item["role"] == "user"]
    assert ids.count("m2") == 1


async def test_case_2_a_repeated_message_to_a_running_turn_is_no_conflict(rig: Rig) -> None:
    running = await rig.running()
    path = f"/conversations/{running['conversationId']}/messages"

    again = await rig.post(path, {"content": "hello", "messageId": running["messageId"]})

    assert again.status_code == 202
    assert again.json()["turnId"] == running["turnId"]


async def test_case_3_a_new_message_to_a_running_turn_is_refused_and_nothing_changes(
    rig: Rig,
) -> None:
    turn = await rig.at_work()

    another = await rig.post(f"/conversations/{turn['conversationId']}/messages", {"content": "x"})

    busy = assert_problem(another, 409, "conversation_busy")
    assert busy["turnId"] == turn["turnId"]
    assert busy["conversationId"] == turn["conversationId"]
    assert busy["currentStatus"] == "RUNNING"
    assert await unchanged(rig, turn)


async def test_case_7_a_message_id_cannot_stand_for_something_else(rig: Rig) -> None:
    turn = await rig.completed()
    path = f"/conversations/{turn['conversationId']}/messages"

    for content in ("hello!", [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]):
        answer = await rig.post(path, {"content": content, "messageId": turn["messageId"]})

        detail = assert_problem(answer, 422, "payload_invalid")["detail"]
        assert turn["messageId"] in detail
    assert len((await rig.client.get(path)).json()["items"]) == 2


async def test_a_message_to_a_waiting_turn_goes_on_with_it(rig: Rig) -> None:
    waiting = await rig.waiting()

    done = await rig.service.send(waiting["conversationId"], "Never mind.")

    assert (done["turnId"], done["status"]) == (waiting["turnId"], "COMPLETED")
    assert done["eventsUrl"] == f"/turns/{done['turnId']}/events?after={waiting['version']}"


async def test_a_message_for_another_agent_does_not_disturb_a_waiting_turn(
    rig: Rig, still: dict[str, Any]
) -> None:
    answer = await rig.post(
        f"/conversations/{still['conversationId']}/messages",
        {"content": "hi", "agentId": "patient"},
    )

    assert_problem(answer, 409, "conversation_busy")
    assert await unchanged(rig, still)


async def test_accept_event_stream_answers_with_the_events_of_the_message(rig: Rig) -> None:
    conversation = fresh_id()

    answer = await rig.post(
        f"/conversations/{conversation}/messages",
        {"content": "hello", "agentId": "clerk"},
        Accept="text/event-stream",
    )

    types = [line[7:] for line in answer.text.splitlines() if line.startswith("event: ")]
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert answer.headers["Location"].startswith("/turns/")
    assert types[:2] == ["TURN_STARTED", "MESSAGE_ADDED"]
    assert types[-1] == "TURN_COMPLETED"


async def test_a_reader_that_leaves_changes_nothing(rig: Rig) -> None:
    conversation = fresh_id()
    said = {"content": "hello", "agentId": "clerk", "messageId": "m1"}
    path = f"/conversations/{conversation}/messages"

    async with rig.client.stream(
        "POST", path, json=said, headers={"Accept": "text/event-stream"}
    ) as answer:
        assert answer.status_code == 200
    done = await rig.post(path, said, Prefer="wait=20")

    assert done.json()["status"] == "COMPLETED"
    assert done.json()["messageId"] == "m1"


async def test_parts_come_back_as_they_were_sent(rig: Rig) -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "url": "https://example.com/a.png"},
    ]
    conversation = fresh_id()

    answer = await rig.post(
        f"/conversations/{conversation}/messages",
        {"content": parts, "agentId": "clerk"},
        Prefer="wait=20",
    )

    found = await rig.client.get(f"/conversations/{conversation}/messages")
    assert answer.status_code == 202
    assert found.json()["items"][0]["content"] == parts


TEXTS = [
    "a\0b",
    "\x1b[31mred",
    "\u202eright to left",
    "𝄞 and 👩‍👩‍👧",
    "line\u2028break",
    "x" * 200_000,
    "ü",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_any_text_is_kept_as_it_is(rig: Rig, text: str) -> None:
    turn = await rig.service.send(fresh_id(), text, agentId="clerk")

    found = await rig.client.get(f"/conversations/{turn['conversationId']}/messages")

    assert turn["status"] == "COMPLETED"
    assert found.json()["items"][0]["content"] == text


async def test_a_message_without_content_needs_some(rig: Rig, still: dict[str, Any]) -> None:
    for body in ({}, {"messageId": "m9"}, {"agentId": "clerk", "whenRunning": "reject"}):
        answer = await rig.post(f"/conversations/{still['conversationId']}/messages", body)

        assert_problem(answer, 422, "messages_required")
    assert await unchanged(rig, still)


def test_case_13_what_a_caller_does_to_its_message_afterwards_changes_nothing() -> None:
    parts: list[object] = [{"type": "text", "text": "look"}]
    body = MessageBody.model_validate({"content": parts})
    taken = body.parts()

    parts.append({"type": "text", "text": "and pay"})
    if isinstance(body.content, list):
        body.content.clear()

    assert taken == (TextPart(text="look"),)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"content": ""}, "body.content.text"),
        ({"content": " \n\t\u3000"}, "body"),
        ({"content": None}, "body.content"),
        ({"content": 5}, "body.content"),
        ({"content": {"type": "text", "text": "x"}}, "body.content"),
        ({"content": []}, "body.content.parts"),
        ({"content": ["x"]}, "body.content.parts.0"),
        ({"content": [{"type": "text", "text": " "}]}, "body"),
        ({"content": [{"type": "video", "url": "https://example.com"}]}, "body.content.parts.0"),
        ({"content": [{"type": "text"}]}, "body.content.parts.0.text.text"),
        (
            {"content": [{"type": "image", "url": "file:///etc/x"}]},
            "body.content.parts.0.image.url",
        ),
        ({"content": "x" * 200_001}, "body.content.text"),
        ({"content": [{"type": "text", "text": "x"}] * 101}, "body.content.parts"),
        ({"content": "x", "messageId": ""}, "body.messageId"),
        ({"content": "x", "messageId": "a b"}, "body.messageId"),
        ({"content": "x", "messageId": "x" * 129}, "body.messageId"),
        ({"content": "x", "messageId": "a\0b"}, "body.messageId"),
        ({"content": "x", "agentId": ["clerk"]}, "body.agentId"),
        ({"content": "x", "whenRunning": "later"}, "body.whenRunning"),
        ({"content": "x", "message_id": "m"}, "body.message_id"),
        ({"content": "x", "status": "COMPLETED"}, "body.status"),
        ({"content": "x", "turnId": "t", "version": 9}, "body.turnId"),
    ],
)
async def test_what_cannot_be_is_refused_by_the_field(
    rig: Rig, still: dict[str, Any], body: object, field: str
) -> None:
    answer = await rig.post(f"/conversations/{still['conversationId']}/messages", body)

    errors = assert_problem(answer, 422, "payload_invalid")["errors"]
    assert field in [error["field"] for error in errors]
    assert await unchanged(rig, still)


async def test_an_unknown_agent_makes_no_conversation(rig: Rig) -> None:
    path = f"/conversations/{fresh_id()}"

    answer = await rig.post(f"{path}/messages", {"content": "hi", "agentId": "nobody"})

    assert_problem(answer, 422, "payload_invalid")
    assert_problem(await rig.client.get(path), 404, "conversation_not_found")
    assert_problem(await rig.client.get(f"{path}/messages"), 404, "conversation_not_found")


async def test_the_transcript_comes_in_pages_that_stand_still_while_it_grows(rig: Rig) -> None:
    conversation = fresh_id()
    path = f"/conversations/{conversation}/messages"
    for text in ("one", "two", "three"):
        await rig.service.send(conversation, text, agentId="clerk")
    seen: list[dict[str, Any]] = []
    page = await page_of(rig.client, path, limit=2, cursor=None)

    while page["nextCursor"] is not None:
        seen += page["items"]
        if len(seen) == 2:
            await rig.service.send(conversation, "four")
        page = await page_of(rig.client, path, limit=2, cursor=page["nextCursor"])
    seen += page["items"]

    assert [item["position"] for item in seen] == list(range(8))
    assert [item["role"] for item in seen] == ["user", "assistant"] * 4
    assert [item["content"] for item in seen][::2] == ["one", "two", "three", "four"]


async def test_a_message_has_the_fields_of_its_role_and_no_others(rig: Rig) -> None:
    turn = await rig.completed()

    found = await rig.client.get(f"/conversations/{turn['conversationId']}/messages")

    common = {"position", "turnId", "role", "content", "createdAt"}
    user, assistant = found.json()["items"]
    assert set(user) == common | {"messageId"}
    assert set(assistant) == common | {"stopReason"}
    assert user["turnId"] == assistant["turnId"] == turn["turnId"]


async def test_two_different_messages_at_once_are_both_answered_clearly(rig: Rig) -> None:
    waiting = await rig.waiting()
    path = f"/conversations/{waiting['conversationId']}/messages"

    answers: list[httpx.Response] = await asyncio.gather(
        *(rig.post(path, {"content": f"number {n}", "messageId": f"n{n}"}) for n in range(2))
    )

    taken = [answer for answer in answers if answer.status_code == 202]
    refused = [answer for answer in answers if answer.status_code != 202]
    assert taken
    for answer in refused:
        assert_problem(answer, 409, "conversation_busy")
    said = (await rig.client.get(path)).json()["items"]
    assert sum(item["role"] == "user" for item in said) == 1 + len(taken)


async def test_the_same_message_at_once_is_one_message(rig: Rig) -> None:
    conversation = fresh_id()
    path = f"/conversations/{conversation}/messages"
    said = {"content": "hello", "messageId": "m1", "agentId": "clerk"}

    answers = await asyncio.gather(*(rig.post(path, said) for _ in range(5)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["turnId"] for answer in answers}) == 1
    rows = await rig.rows(
        "SELECT role FROM messages WHERE conversation_id = $1 AND role = 'user'", conversation
    )
    assert len(rows) == 1


async def test_blank_texts_between_parts_are_not_stored_since_providers_refuse_them(
    rig: Rig,
) -> None:
    parts = [
        {"type": "text", "text": "look"},
        {"type": "text", "text": "\n"},
        {"type": "image", "url": "https://example.com/a.png"},
        {"type": "text", "text": " "},
    ]
    conversation = fresh_id()

    answer = await rig.post(f"/conversations/{conversation}/messages", {"content": parts})

    messages = await rig.client.get(f"/conversations/{conversation}/messages")
    assert answer.status_code == 202
    assert messages.json()["items"][0]["content"] == [parts[0], parts[2]]
