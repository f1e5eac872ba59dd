"""`/conversations`: made by PUT or POST, read one by one and in pages."""

from typing import Any

import httpx
import pytest

from app.services.principal import Role
from tests.http.rig import Rig, assert_problem, fresh_id

FIELDS = {
    "conversationId",
    "agentId",
    "title",
    "activeTurn",
    "lastTurn",
    "revertedTo",
    "createdAt",
    "updatedAt",
}


async def test_a_put_makes_the_conversation_once_and_then_finds_it(rig: Rig) -> None:
    path = f"/conversations/{fresh_id()}"

    made = await rig.client.put(path, json={"agentId": "clerk", "title": "Orders"})
    found = await rig.client.put(path, json={"agentId": "clerk", "title": "Orders"})

    assert (made.status_code, found.status_code) == (201, 200)
    assert made.headers["Location"] == found.headers["Location"] == path
    assert made.json() == found.json() == (await rig.client.get(path)).json()
    assert set(made.json()) == FIELDS
    assert made.json()["title"] == "Orders"
    assert made.json()["activeTurn"] is None


async def test_a_put_without_a_body_makes_one_for_the_default_agent(rig: Rig) -> None:
    made = await rig.client.put(f"/conversations/{fresh_id()}")

    assert made.status_code == 201
    assert made.json()["agentId"] == "assistant"


async def test_a_post_makes_a_conversation_under_an_id_of_the_servers(rig: Rig) -> None:
    made = await rig.post("/conversations", {"title": "New"})
    another = await rig.post("/conversations")

    assert (made.status_code, another.status_code) == (201, 201)
    assert made.headers["Location"] == f"/conversations/{made.json()['conversationId']}"
    assert made.json()["conversationId"] != another.json()["conversationId"]
    found = await rig.client.get(made.headers["Location"])
    assert found.json() == made.json()


async def test_any_plain_string_is_an_id(rig: Rig) -> None:
    for conversation_id in (f"ses_{fresh_id()}", "A.b:c-_9", "x" * 128):
        made = await rig.client.put(f"/conversations/{conversation_id}")

        assert made.json()["conversationId"] == conversation_id


@pytest.mark.parametrize("odd", ["x" * 129, "a%20b", "%C3%BC", "a%3Fb", "%22", "%EF%BF%BD"])
async def test_an_id_of_other_characters_or_too_long_is_refused(rig: Rig, odd: str) -> None:
    for answer in (
        await rig.client.put(f"/conversations/{odd}"),
        await rig.client.get(f"/conversations/{odd}"),
        await rig.post(f"/conversations/{odd}/messages", {"content": "hi"}),
    ):
        assert_problem(answer, 422, "payload_invalid")


async def test_a_conversation_of_another_agent_is_not_taken_over(rig: Rig) -> None:
    path = f"/conversations/{fresh_id()}"
    await rig.client.put(path, json={"agentId": "clerk"})

    answer = await rig.client.put(path, json={"agentId": "patient"})

    assert_problem(answer, 422, "payload_invalid")
    assert (await rig.client.get(path)).json()["agentId"] == "clerk"


@pytest.mark.parametrize(
    "body",
    [
        {"agentId": "nobody"},
        {"agentId": ""},
        {"agentId": 5},
        {"title": "x" * 201},
        {"title": "a\0b"},
        {"title": "a\nb"},
        {"title": 7},
        {"titel": "typed wrong"},
        {"agent_id": "clerk"},
        {"ownerId": "somebody"},
        [],
        "clerk",
    ],
)
async def test_a_conversation_that_cannot_be_is_not_made(rig: Rig, body: object) -> None:
    conversation_id = fresh_id()

    answer = await rig.client.put(f"/conversations/{conversation_id}", json=body)

    assert_problem(answer, 422, "payload_invalid")
    missing = await rig.client.get(f"/conversations/{conversation_id}")
    assert_problem(missing, 404, "conversation_not_found")


async def test_a_conversation_shows_the_turn_that_holds_it(rig: Rig) -> None:
    waiting = await rig.waiting()
    ended = await rig.completed()

    held = await rig.client.get(f"/conversations/{waiting['conversationId']}")
    free = await rig.client.get(f"/conversations/{ended['conversationId']}")

    active = {
        "turnId": waiting["turnId"],
        "status": "WAITING_FOR_MODEL",
        "held": False,
        "failureId": waiting["failureId"],
    }
    assert held.json()["activeTurn"] == held.json()["lastTurn"] == active
    assert free.json()["activeTurn"] is None
    assert free.json()["lastTurn"]["turnId"] == ended["turnId"]


async def test_the_title_of_a_conversation_is_how_its_first_message_begins(rig: Rig) -> None:
    turn = await rig.service.send(fresh_id(), f"a\0b\tc\n{'long ' * 50}", agentId="clerk")

    found = await rig.client.get(f"/conversations/{turn['conversationId']}")

    assert found.json()["title"].startswith("ab c long long")
    assert len(found.json()["title"]) <= 80


async def test_pages_have_no_gap_and_no_repeat_while_conversations_are_added(rig: Rig) -> None:
    made = [fresh_id() for _ in range(8)]
    seen: list[str] = []
    cursor: str | None = None

    async with rig.signed_in_as(Role.OPERATOR, tenant=fresh_id()) as client:
        for conversation_id in made:
            await client.put(f"/conversations/{conversation_id}")
        for _ in range(4):
            page = await page_of(client, "/conversations", limit=2, cursor=cursor)
            seen += [item["conversationId"] for item in page["items"]]
            cursor = page["nextCursor"]
            await client.put(f"/conversations/{fresh_id()}")

    assert seen == made[::-1]


async def test_the_last_page_has_no_cursor(rig: Rig) -> None:
    await rig.client.put(f"/conversations/{fresh_id()}")

    page = await page_of(rig.client, "/conversations", limit=200, cursor=None)
    while page["nextCursor"] is not None:
        page = await page_of(rig.client, "/conversations", limit=200, cursor=page["nextCursor"])

    assert page["nextCursor"] is None


async def page_of(
    client: httpx.AsyncClient, path: str, *, limit: int, cursor: str | None, **filters: str
) -> dict[str, Any]:
    """A page that must be there."""
    asked = {"limit": str(limit)} | filters | ({} if cursor is None else {"cursor": cursor})
    answer = await client.get(path, params=asked)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert set(body) == {"items", "nextCursor"}
    return body
