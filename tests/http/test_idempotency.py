"""A request with an Idempotency-Key has its effect once, however often it is sent."""

import asyncio
from typing import Any

import httpx
import pytest

from app.services.principal import Role
from app.store.pool import connected
from app.store.replies import PostgresReplies
from app.turn.ids import ActorId, TenantId
from tests.http.rig import Rig, assert_problem, fresh_id, outage, unchanged
from tests.support.polling import eventually

KEYS = "SELECT * FROM idempotency_keys WHERE key = $1"
OPERATOR = (TenantId("default"), ActorId("default"))


def assert_replayed(again: httpx.Response, first: httpx.Response) -> None:
    """Whether an answer is another one, said again."""
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert "Idempotency-Replayed" not in first.headers
    for name in ("ETag", "Location", "Content-Type"):
        assert again.headers.get(name) == first.headers.get(name)


async def test_a_repeated_message_is_answered_again_and_said_once(rig: Rig) -> None:
    conversation, key = fresh_id(), fresh_id()
    path = f"/conversations/{conversation}/messages"
    message = {"content": "hello", "agentId": "clerk"}

    first = await rig.post(path, message, Idempotency_Key=key)
    again = await rig.post(path, message, Idempotency_Key=key)

    assert first.status_code == 202
    assert_replayed(again, first)
    await rig.service.at_rest(first.json()["turnId"])
    assert_replayed(await rig.post(path, message, Idempotency_Key=key), first)
    said = (await rig.client.get(path)).json()["items"]
    assert [each["role"] for each in said] == ["user", "assistant"]
    audited = await rig.rows("SELECT * FROM audit WHERE conversation_id = $1", conversation)
    assert [row["action"] for row in audited] == ["MESSAGE"]


async def test_a_repeated_retry_calls_the_model_once(rig: Rig) -> None:
    turn, key = await rig.waiting(), fresh_id()
    path, retry = f"/turns/{turn['turnId']}/resume", {"failureId": turn["failureId"]}

    first = await rig.post(path, retry, Idempotency_Key=key)
    again = await rig.post(path, retry, Idempotency_Key=key)

    assert first.status_code == 202
    assert_replayed(again, first)
    rested = await rig.service.at_rest(turn["turnId"])
    assert rested["counters"]["modelAttempts"] == 2
    without_a_key = await rig.post(path, retry)
    assert without_a_key.status_code == 409


async def test_the_reply_is_written_by_the_very_transaction_that_has_the_effect(rig: Rig) -> None:
    key = fresh_id()

    done = await rig.post(
        f"/conversations/{fresh_id()}/messages", {"content": "hello"}, Idempotency_Key=key
    )

    same = await rig.rows(
        "SELECT k.xmin = a.xmin AS same FROM idempotency_keys k, audit a "
        "WHERE k.key = $1 AND a.turn_id = $2",
        key,
        done.json()["turnId"],
    )
    assert same == [{"same": True}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/turns/{turn}/resume", {"failureId": "another"}),
        ("/turns/{turn}/cancel", None),
        ("/conversations/{conversation}/messages", {"content": "hello"}),
    ],
    ids=["another body", "another address", "another command"],
)
async def test_case_10_a_key_stands_for_one_request(rig: Rig, path: str, body: object) -> None:
    turn, key = await rig.waiting(), fresh_id()
    taken = await rig.post(f"/turns/{turn['turnId']}/pause", None, Idempotency_Key=key)
    assert_problem(taken, 409, "wrong_command")
    await rig.post(
        f"/turns/{turn['turnId']}/resume",
        {"failureId": turn["failureId"]},
        Idempotency_Key=key,
        Prefer="wait=20",
    )
    now = await rig.service.at_rest(turn["turnId"])

    where = path.format(turn=turn["turnId"], conversation=turn["conversationId"])
    refused = await rig.post(where, body, Idempotency_Key=key)

    assert_problem(refused, 422, "idempotency_key_reused")
    assert await unchanged(rig, now)


async def test_json_that_says_the_same_in_another_order_is_the_same_request(rig: Rig) -> None:
    path, key = f"/conversations/{fresh_id()}/messages", fresh_id()
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}

    first = await rig.client.post(
        path, content=b'{"content": "hello", "messageId": "m1"}', headers=headers
    )
    again = await rig.client.post(
        path, content=b'{"messageId":"m1","content":"hello"}', headers=headers
    )

    assert_replayed(again, first)


async def test_a_refused_request_leaves_its_key_unused(rig: Rig) -> None:
    turn, key = await rig.waiting(), fresh_id()
    path = f"/turns/{turn['turnId']}/resume"

    refused = await rig.post(path, {"failureId": "another"}, Idempotency_Key=key)
    taken = await rig.post(path, {"failureId": turn["failureId"]}, Idempotency_Key=key)

    assert_problem(refused, 409, "correlation_mismatch")
    assert taken.status_code == 202
    assert "Idempotency-Replayed" not in taken.headers


async def test_a_key_is_its_actors_own(rig: Rig) -> None:
    key = fresh_id()
    body = {"content": "hello", "agentId": "clerk"}

    mine = await rig.post(f"/conversations/{fresh_id()}/messages", body, Idempotency_Key=key)
    async with rig.signed_in_as(Role.USER) as somebody:
        theirs = await somebody.post(
            f"/conversations/{fresh_id()}/messages", json=body, headers={"Idempotency-Key": key}
        )

    assert theirs.status_code == 202
    assert "Idempotency-Replayed" not in theirs.headers
    assert theirs.json()["turnId"] != mine.json()["turnId"]


async def test_an_answer_that_was_waited_for_is_the_one_that_is_said_again(rig: Rig) -> None:
    path, key = f"/conversations/{fresh_id()}/messages", fresh_id()
    body = {"content": "hello", "agentId": "clerk"}

    first = await rig.post(path, body, Idempotency_Key=key, Prefer="wait=20")

    assert first.json()["status"] == "COMPLETED"

    again = await rig.post(path, body, Idempotency_Key=key, Prefer="wait=20")
    assert_replayed(again, first)
    assert again.headers["Preference-Applied"] == "wait=20"


async def test_while_the_first_waits_for_its_answer_a_repetition_is_told_so(rig: Rig) -> None:
    path, key = f"/conversations/{fresh_id()}/messages", fresh_id()
    body = {"content": "hello", "agentId": "mute"}
    waiting = asyncio.create_task(rig.post(path, body, Idempotency_Key=key, Prefer="wait=30"))

    async def is_kept() -> bool:
        return bool(await rig.rows(KEYS, key))

    await eventually(is_kept)
    told = await rig.post(path, body, Idempotency_Key=key, Prefer="wait=30")
    turns = (await rig.client.get("/turns", params={"conversationId": path.split("/")[2]})).json()
    await rig.post(f"/turns/{turns['items'][0]['turnId']}/cancel")

    assert_problem(told, 409, "idempotency_in_progress")
    assert int(told.headers["Retry-After"]) > 0
    assert (await waiting).json()["status"] == "CANCELLED"


async def test_a_repetition_that_asks_for_events_gets_them_from_where_the_first_began(
    rig: Rig,
) -> None:
    turn, key = await rig.waiting(), fresh_id()
    path, retry = f"/turns/{turn['turnId']}/resume", {"failureId": turn["failureId"]}
    events = {"Accept": "text/event-stream"}

    first = await rig.post(path, retry, Idempotency_Key=key, **events)
    again = await rig.post(path, retry, Idempotency_Key=key, **events)

    assert again.headers["Idempotency-Replayed"] == "true"
    begins = f"retry: 1000\n\nid: {turn['version'] + 1}\n"
    assert first.text.startswith(begins)
    assert again.text.startswith(begins)
    assert "event: TURN_COMPLETED" in first.text
    assert "event: TURN_COMPLETED" in again.text
    as_a_turn = await rig.post(path, retry, Idempotency_Key=key)
    assert as_a_turn.json()["turnId"] == turn["turnId"]


async def test_a_request_without_an_effect_is_answered_again_as_well(rig: Rig) -> None:
    turn = await rig.waiting()
    cancel, key = f"/turns/{turn['turnId']}/cancel", fresh_id()
    await rig.post(cancel)

    first = await rig.post(cancel, None, Idempotency_Key=key)
    again = await rig.post(cancel, None, Idempotency_Key=key)

    assert first.status_code == 200
    assert_replayed(again, first)


async def test_a_repeated_conversation_is_made_once(rig: Rig) -> None:
    key = fresh_id()

    first = await rig.post("/conversations", {"title": "Bills"}, Idempotency_Key=key)
    again = await rig.post("/conversations", {"title": "Bills"}, Idempotency_Key=key)

    assert first.status_code == 201
    assert_replayed(again, first)


async def test_of_twenty_at_once_one_has_the_effect_and_all_are_answered_alike(rig: Rig) -> None:
    path, key = f"/conversations/{fresh_id()}/messages", fresh_id()
    body = {"content": "hello", "agentId": "mute"}

    answers = await asyncio.gather(*(rig.post(path, body, Idempotency_Key=key) for _ in range(20)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    await rig.post(f"/turns/{answers[0].json()['turnId']}/cancel")


@pytest.mark.parametrize(
    "key", ["", "two words", "x" * 256, "caf\u00e9".encode().decode("latin-1")], ids=repr
)
async def test_a_key_that_is_none_is_refused_and_nothing_happens(
    rig: Rig, still: dict[str, Any], key: str
) -> None:
    path, retry = f"/turns/{still['turnId']}/resume", {"failureId": still["failureId"]}

    refused = await rig.client.post(
        path, json=retry, headers=[(b"Idempotency-Key", key.encode("latin-1"))]
    )

    assert_problem(refused, 400, "bad_request")
    assert await unchanged(rig, still)


async def test_two_keys_are_refused(rig: Rig, still: dict[str, Any]) -> None:
    path, retry = f"/turns/{still['turnId']}/resume", {"failureId": still["failureId"]}
    twice = [(b"Idempotency-Key", b"a"), (b"Idempotency-Key", b"b")]

    refused = await rig.client.post(path, json=retry, headers=twice)

    assert_problem(refused, 400, "bad_request")
    assert await unchanged(rig, still)


async def test_after_thirty_days_a_key_is_unused_and_then_cleared_away(rig: Rig) -> None:
    old, older = fresh_id(), fresh_id()
    for key in (old, older):
        await rig.post("/conversations", {"title": "Bills"}, Idempotency_Key=key)
        await rig.rows(
            "UPDATE idempotency_keys SET kept_at = kept_at - interval '30 days' WHERE key = $1", key
        )

    anew = await rig.post("/conversations", {"title": "Bills"}, Idempotency_Key=old)
    async with connected(rig.dsn, size=1) as database:
        replies = PostgresReplies(database)
        forgotten = await replies.forget()
        left = [await replies.find(OPERATOR, key) for key in (old, older)]

    assert anew.status_code == 201
    assert "Idempotency-Replayed" not in anew.headers
    assert forgotten == 1
    assert [reply is not None for reply in left] == [True, False]


async def test_what_is_kept_of_a_failed_turn_names_no_provider_to_a_user(rig: Rig) -> None:
    """The reply is the one its own actor was given; an operator's details stay with operators."""
    key = fresh_id()
    async with rig.signed_in_as(Role.USER) as somebody:
        path = f"/conversations/{fresh_id()}/messages"
        body = {"content": outage("quota"), "agentId": "clerk"}
        headers = {"Idempotency-Key": key, "Prefer": "wait=20"}
        first = await somebody.post(path, json=body, headers=headers)

    kept = await rig.rows(KEYS, key)

    assert first.json()["status"] == "WAITING_FOR_MODEL"
    assert "httpStatus" not in kept[0]["reply"]
