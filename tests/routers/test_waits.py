"""`/waits`: what waits for somebody, over all conversations."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from app.services.principal import Role
from tests.http.rig import assert_problem, fresh_id
from tests.routers.stage import Stage
from tests.support.calls_that_wait import asked_for, together
from tests.support.transitions import STATES
from tests.support.turns import QUESTION, REFUND, SHIP, Told, a_call, an_answer

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def since(told: Told, hours: int) -> Told:
    """Nothing here reads the clock: the story is told in a time of its own."""
    told.at = LONG_AGO + timedelta(hours=hours)
    return told


async def waits(client: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    """All of them, page by page."""
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        answer = await client.get("/waits", params={"limit": "3", **query, **more})
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        cursor = answer.json()["nextCursor"]
        if cursor is None:
            return items


def kinds(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["turnId"], each["wait"]["suspensionType"]) for each in items]


async def test_everything_that_waits_is_listed_with_what_may_be_done_about_it(
    stage: Stage,
) -> None:
    actor = fresh_id()
    names = {
        "WAITING_FOR_APPROVAL": "TOOL_APPROVAL",
        "WAITING_FOR_USER": "USER_INPUT",
        "WAITING_FOR_USER, a tool's form": "USER_INPUT",
        "WAITING_FOR_TOOL": "EXTERNAL_TOOL",
        "WAITING_FOR_MODEL": "MODEL",
        "RETRY_SCHEDULED": "RETRY",
        "PAUSED, a model call is next": "PAUSED",
    }
    async with stage.rig.signed_in_as(Role.USER, actor=actor) as user:
        turns = {
            (await stage.in_state(STATES[state](), client=user))["turnId"]: kind
            for state, kind in names.items()
        }
        for state in ("RUNNING, a model call is begun", "READY, on hold", "COMPLETED"):
            await stage.in_state(STATES[state](), client=user)

        items = await waits(user)

        assert sorted(kinds(items)) == sorted(turns.items())
        for item in items:
            turn = (await user.get(f"/turns/{item['turnId']}")).json()
            assert item["conversationId"] == turn["conversationId"]
            assert (item["status"], item["agentId"]) == (turn["status"], turn["agentId"])
            assert item["title"] == "hello"
            assert item["actions"] == turn["actions"]
            assert turn["waits"] in ([item["wait"]], [])


async def test_what_has_waited_longest_comes_first_and_pages_have_no_gap(stage: Stage) -> None:
    async with stage.rig.signed_in_as(Role.USER, actor=fresh_id()) as user:
        turns: dict[int, str] = {}
        for hours in (3, 1, 4, 0, 2, 5, 6):
            told = since(Told().begun(), hours).answered(an_answer("", a_call("A", SHIP))).begun()
            turns[hours] = (await stage.in_state(told, client=user))["turnId"]

        items = await waits(user)

    assert [each["turnId"] for each in items] == [turns[hours] for hours in sorted(turns)]


async def test_a_turn_has_an_item_for_each_of_its_waits_with_the_actions_on_it(
    stage: Stage,
) -> None:
    told = together(a_call("A", REFUND), a_call("B", SHIP))
    async with stage.rig.signed_in_as(Role.USER, actor=fresh_id()) as user:
        await stage.in_state(told, client=user)

        items = await waits(user)

    assert [each["wait"]["callId"] for each in items] == ["A", "B"]
    for item, commands in zip(
        items, (["APPROVE_TOOL", "REJECT_TOOL"], ["TOOL_RESULT", "TOOL_ERROR"]), strict=True
    ):
        on_call = [each["command"] for each in item["actions"] if "callId" in each]
        assert on_call == commands
        assert {"command": "CANCEL", "enabled": True} in item["actions"]


async def test_others_waits_are_an_operators_as_far_as_anybody_may_answer_them(
    stage: Stage,
) -> None:
    told = together(a_call("A", REFUND), a_call("B", QUESTION), a_call("C", SHIP))
    async with (
        stage.rig.signed_in_as(Role.USER, actor=fresh_id(), tenant="shop") as user,
        stage.rig.signed_in_as(Role.OPERATOR, actor="amy", tenant="shop") as amy,
        stage.rig.signed_in_as(Role.USER, actor=fresh_id(), tenant="shop") as stranger,
    ):
        turn_id = (await stage.in_state(told, client=user))["turnId"]
        model = (await stage.in_state(STATES["WAITING_FOR_MODEL"](), client=user))["turnId"]
        mine = (await stage.in_state(STATES["WAITING_FOR_MODEL"](), client=amy))["turnId"]

        users = [(turn_id, "TOOL_APPROVAL"), (turn_id, "USER_INPUT"), (turn_id, "EXTERNAL_TOOL")]
        everybodys = [pair for pair in users if pair[1] != "USER_INPUT"]
        assert kinds(await waits(user)) == [*users, (model, "MODEL")]
        assert sorted(kinds(await waits(amy))) == sorted([*everybodys, (mine, "MODEL")])
        assert sorted(kinds(await waits(amy, **{"for": "tenant"}))) == sorted(
            [*users, (model, "MODEL"), (mine, "MODEL")]
        )
        assert await waits(stranger) == []
        refused = await user.get("/waits?for=tenant")
        assert_problem(refused, 403, "forbidden")


async def test_lists_that_nobody_has_are_refused(stage: Stage) -> None:
    assert_problem(await stage.rig.client.get("/waits?for=all"), 422, "payload_invalid")
    assert_problem(await stage.rig.client.get("/waits?cursor=x"), 400, "cursor_invalid")
    for what in ("approvals", "late-results"):
        nobodys = await stage.rig.client.get(f"/turns/turn_none/{what}")
        assert_problem(nobodys, 404, "turn_not_found")


async def test_approvals_and_late_results_are_read_page_by_page(stage: Stage) -> None:
    turn = await stage.in_state(
        asked_for(a_call("A", REFUND), a_call("B", REFUND)).rejected("A").begun()
    )
    await stage.answer(turn, "REJECT_TOOL", callId="B", reason="no")
    for n in range(3):
        await stage.answer(turn, "TOOL_RESULT", callId="A", output=str(n))

    async def pages(what: str) -> list[str]:
        found: list[str] = []
        cursor = ""
        while True:
            path = f"/turns/{turn['turnId']}/{what}?limit=1{cursor}"
            page = (await stage.rig.client.get(path)).json()
            found += [str(each.get("text", each["callId"])) for each in page["items"]]
            if page["nextCursor"] is None:
                return found
            cursor = f"&cursor={page['nextCursor']}"

    assert await pages("late-results") == ["0", "1", "2"]
    assert await pages("approvals") == ["A", "B"]
