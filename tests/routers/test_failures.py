"""`GET /turns/{id}/failures`: the failure history of a turn."""

from app.services.principal import Role
from tests.http.rig import Rig, assert_problem, fresh_id, outage


async def test_case_16_a_retry_that_fails_again_leaves_both_failures_in_the_history(
    rig: Rig,
) -> None:
    first = await rig.waiting()
    replanned = {"command": "REPLAN_WITH_MESSAGE", "message": {"content": outage("overloaded")}}
    second = await rig.post(f"/turns/{first['turnId']}/resume", replanned, Prefer="wait=20")

    answer = await rig.client.get(f"/turns/{first['turnId']}/failures")

    found = answer.json()["items"]
    assert [item["failureId"] for item in found] == [
        first["failureId"],
        second.json()["failureId"],
    ]
    assert [item["type"] for item in found] == ["QUOTA_EXCEEDED", "OVERLOADED"]
    assert [item["modelAttempt"] for item in found] == [1, 2]
    assert answer.json()["nextCursor"] is None


async def test_the_history_is_read_in_pages(rig: Rig) -> None:
    turn = await rig.waiting()
    path = f"/turns/{turn['turnId']}/failures"

    page = await rig.client.get(path, params={"limit": 1})
    rest = await rig.client.get(path, params={"cursor": page.json()["nextCursor"]})

    assert [item["failureId"] for item in page.json()["items"]] == [turn["failureId"]]
    assert rest.json() == {"items": [], "nextCursor": None}


async def test_case_144_users_see_of_a_failure_what_is_safe(rig: Rig) -> None:
    async with rig.signed_in_as(Role.USER) as user:
        turn = await user.post(
            f"/conversations/{fresh_id()}/messages",
            json={"content": outage("quota"), "agentId": "clerk"},
            headers={"Prefer": "wait=20"},
        )
        answer = await user.get(f"/turns/{turn.json()['turnId']}/failures")

    [found] = answer.json()["items"]
    assert set(found) == {
        "failureId",
        "type",
        "message",
        "retryAfterMillis",
        "tokenLimitPhase",
        "occurredAt",
    }


async def test_failures_of_a_turn_that_is_not_there_are_not_there(rig: Rig) -> None:
    answer = await rig.client.get("/turns/nope/failures")

    assert_problem(answer, 404, "turn_not_found")
