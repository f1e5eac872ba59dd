"""`/external-calls`: executors look for what is to be done, take it, and send what came of it."""

import asyncio
from typing import Any

import httpx
import pytest

from app.services.principal import Role
from tests.http.rig import assert_problem, fresh_id
from tests.routers.stage import Stage
from tests.support.calls_that_wait import together
from tests.support.transitions import STATES
from tests.support.turns import REFUND, SHIP, a_call


async def claim(client: httpx.AsyncClient, **body: object) -> list[dict[str, Any]]:
    answer = await client.post("/external-calls/claim", json={"executor": "van 7", **body})
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_a_call_is_claimed_once_and_done_under_its_key(stage: Stage) -> None:
    async with stage.rig.signed_in_as(Role.OPERATOR, tenant=fresh_id()) as executor:
        turn = await stage.in_state(STATES["WAITING_FOR_TOOL"](), client=executor)

        [call] = await claim(executor, tools=["ship"], limit=9, leaseSeconds=300)
        again = await claim(executor)

        assert again == []
        assert (call["turnId"], call["callId"]) == (turn["turnId"], "A")
        assert (call["toolName"], call["arguments"], call["attempt"]) == ("ship", "{}", 1)
        assert call["idempotencyKey"] == turn["suspension"]["idempotencyKey"]
        assert (call["claimedBy"], call["status"]) == ("van 7", "open")
        listed = (await executor.get("/external-calls?status=open&tool=ship")).json()
        assert listed == {"items": [call], "nextCursor": None}
        done = await executor.post(
            f"/turns/{turn['turnId']}/resume",
            json={"command": "TOOL_RESULT", "callId": "A", "output": "delivered"},
        )
        assert done.json()["status"] == "RUNNING"
        assert (await executor.get("/external-calls?status=open")).json()["items"] == []
        [closed] = (await executor.get("/external-calls?status=completed")).json()["items"]
        assert closed["closedAt"]


async def test_executors_that_ask_at_once_share_what_there_is(stage: Stage) -> None:
    told = together(*(a_call(name, SHIP) for name in "ABCDEFGH"), a_call("Z", REFUND))
    async with stage.rig.signed_in_as(Role.OPERATOR, tenant=fresh_id()) as executor:
        await stage.in_state(told, client=executor)

        taken = await asyncio.gather(*(claim(executor, limit=3) for _ in range(6)))

    ids = [call["callId"] for calls in taken for call in calls]
    assert sorted(ids) == list("ABCDEFGH")


async def test_a_claim_that_is_sent_again_under_its_key_takes_nothing_more(stage: Stage) -> None:
    told = together(a_call("A", SHIP), a_call("B", SHIP))
    key, body = {"Idempotency-Key": fresh_id()}, {"executor": "van 7"}
    async with stage.rig.signed_in_as(Role.OPERATOR, tenant=fresh_id()) as executor:
        await stage.in_state(told, client=executor)

        first = await executor.post("/external-calls/claim", json=body, headers=key)
        again = await asyncio.gather(
            *(executor.post("/external-calls/claim", json=body, headers=key) for _ in range(3))
        )

        assert {answer.content for answer in again} == {first.content}
        assert len(first.json()["items"]) == 1
        assert len(await claim(executor, limit=9)) == 1


async def test_the_result_of_somebody_who_has_not_claimed_the_call_is_taken(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_TOOL"]())
    await claim(stage.rig.client, limit=100)

    async with stage.rig.signed_in_as(Role.OPERATOR, actor="amy") as amy:
        done = await amy.post(
            f"/turns/{turn['turnId']}/resume",
            json={"command": "TOOL_ERROR", "callId": "A", "code": "gone", "message": "no van"},
        )

    assert done.status_code == 202
    [(_, said)] = await stage.results(turn)
    assert "no van" in said


async def test_users_see_and_take_calls_of_their_own_turns_alone(stage: Stage) -> None:
    async with (
        stage.rig.signed_in_as(Role.USER, actor=fresh_id()) as user,
        stage.rig.signed_in_as(Role.USER, actor=fresh_id()) as stranger,
        stage.rig.signed_in_as(Role.VIEWER, actor=fresh_id()) as viewer,
    ):
        turn = await stage.in_state(STATES["WAITING_FOR_TOOL"](), client=user)

        assert await claim(stranger) == []
        assert (await stranger.get("/external-calls")).json()["items"] == []
        [call] = await claim(user)
        refused = await viewer.post("/external-calls/claim", json={"executor": "me"})

    assert call["turnId"] == turn["turnId"]
    assert_problem(refused, 403, "forbidden")


async def test_pages_go_on_behind_the_last_call_whatever_its_id_is(stage: Stage) -> None:
    names = ["A", "ä/ö ü", "x" * 300, "Z"]
    told = together(*(a_call(name, SHIP) for name in names))
    async with stage.rig.signed_in_as(Role.OPERATOR, tenant=fresh_id()) as executor:
        await stage.in_state(told, client=executor)
        found: list[str] = []
        cursor: str | None = None
        for _ in names:
            more = {} if cursor is None else {"cursor": cursor}
            page = (await executor.get("/external-calls", params={"limit": "1", **more})).json()
            found += [call["callId"] for call in page["items"]]
            cursor = page["nextCursor"]

    assert sorted(found) == sorted(names)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"executor": ""},
        {"executor": "a\0b"},
        {"executor": "x", "limit": 0},
        {"executor": "x", "limit": 101},
        {"executor": "x", "leaseSeconds": 0},
        {"executor": "x", "leaseSeconds": 86_401},
        {"executor": "x", "tools": "ship"},
        {"executor": "x", "tools": ["a\0"]},
        {"executor": "x", "lease": 5},
    ],
    ids=str,
)
async def test_a_claim_that_cannot_be_takes_nothing(stage: Stage, body: object) -> None:
    await stage.in_state(STATES["WAITING_FOR_TOOL"]())
    open_ones = "SELECT count(*) FROM external_calls WHERE claimed_by IS NULL"
    before = await stage.rig.rows(open_ones)

    assert_problem(await stage.rig.post("/external-calls/claim", body), 422, "payload_invalid")

    assert await stage.rig.rows(open_ones) == before


@pytest.mark.parametrize(
    "query", ["status=closed", "tool=", "tool=%00", "limit=0", "limit=201"], ids=str
)
async def test_a_list_that_cannot_be_is_refused(stage: Stage, query: str) -> None:
    answer = await stage.rig.client.get(f"/external-calls?{query}")

    assert_problem(answer, 422, "payload_invalid")


@pytest.mark.parametrize(
    "cursor", ["x", "WyJ4Il0", "W10", "WyIyMDI2LTAxLTAxVDAwOjAwOjAwWiIsMSwyXQ"]
)
async def test_a_cursor_that_is_none_of_ours_is_refused(stage: Stage, cursor: str) -> None:
    answer = await stage.rig.client.get(f"/external-calls?cursor={cursor}")

    assert_problem(answer, 400, "cursor_invalid")
