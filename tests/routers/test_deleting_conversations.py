"""`DELETE /conversations/{id}`: everything that is kept of it goes, and the audit stays."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from sqlmodel import SQLModel

from app.services.principal import Role
from app.store.inspection import waits_left
from tests.http.rig import assert_problem, fresh_id, unchanged
from tests.routers.stage import Stage
from tests.support.calls_that_wait import together
from tests.support.transitions import STATES
from tests.support.turns import QUOTA, REFUND, SHIP, Told, a_call, an_agent, an_answer

FREE = [
    "READY",
    "READY, on hold",
    "RETRY_SCHEDULED",
    "WAITING_FOR_MODEL",
    "WAITING_FOR_USER",
    "WAITING_FOR_APPROVAL",
    "WAITING_FOR_TOOL",
    "PAUSED, a tool is next",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
]
AT_WORK = ["RUNNING, a model call is begun", "RUNNING, the last tool is begun"]


async def rows_left(stage: Stage, conversation: str, turn: str) -> dict[str, int]:
    """How many rows each table still has of it."""
    left: dict[str, int] = {}
    for name, table in SQLModel.metadata.tables.items():
        columns = [each for each in ("conversation_id", "turn_id") if each in table.columns]
        if columns:
            condition = " OR ".join(f"{each} IN ($1, $2)" for each in columns)
            [row] = await stage.database.rows(
                f"SELECT count(*) AS n FROM {name} WHERE {condition}",  # noqa: S608 - constants
                conversation,
                turn,
            )
            left[name] = row["n"]
    return left


async def an_eventful_turn(stage: Stage, conversation: str) -> dict[str, Any]:
    """A turn that has left rows in every table there is."""
    told = Told(an_agent(open_waits="together")).begun().gave_up(QUOTA).retried().begun()
    told = told.answered(an_answer("", a_call("A", REFUND), a_call("B", SHIP))).begun()
    turn = await stage.in_state(told, conversation=conversation)
    reject = {"command": "REJECT_TOOL", "callId": "A", "reason": "no"}
    path = f"/turns/{turn['turnId']}"
    await stage.rig.post(f"{path}/resume", reject, Idempotency_Key=fresh_id())
    await stage.answer(turn, "TOOL_RESULT", callId="A", output="late")
    await stage.rig.post(f"{path}/cancel")
    await stage.rig.rows(
        "INSERT INTO model_usage (turn_id, model_attempt, tenant_id, conversation_id, agent_id, "
        "succeeded, ended_at) VALUES ($1, 1, 'default', $2, 'clerk', true, now())",
        turn["turnId"],
        conversation,
    )
    await stage.rig.rows(
        "INSERT INTO context_summaries (turn_id, model_attempt, tenant_id, conversation_id, "
        "first_position, last_position, hidden, body, created_at) "
        "VALUES ($1, 1, 'default', $2, 0, 0, '{}', 'What they spoke of.', now())",
        turn["turnId"],
        conversation,
    )
    return await stage.rig.service.turn(turn["turnId"])


async def test_not_a_row_is_left_but_those_of_the_audit(stage: Stage) -> None:
    conversation = fresh_id()
    path = f"/conversations/{conversation}"
    turn = await an_eventful_turn(stage, conversation)
    neighbour = await an_eventful_turn(stage, fresh_id())
    before = await rows_left(stage, conversation, turn["turnId"])
    assert all(before.values()), before

    gone = await stage.rig.client.delete(path)

    assert (gone.status_code, gone.content) == (204, b"")
    left = await rows_left(stage, conversation, turn["turnId"])
    assert left.pop("audit") > before["audit"]
    assert set(left.values()) == {0}
    assert_problem(await stage.rig.client.get(path), 404, "conversation_not_found")
    assert_problem(await stage.rig.client.delete(path), 404, "conversation_not_found")
    assert await unchanged(stage.rig, neighbour)
    assert await waits_left(stage.rig.dsn) == 0


async def tables_that_say(stage: Stage, word: str) -> list[str]:
    """The tables, whatever they are for, that hold the word anywhere."""
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    found: list[str] = []
    for row in await stage.database.rows(tables):
        name = row["tablename"]
        [count] = await stage.database.rows(
            f"SELECT count(*) AS n FROM {name} x WHERE x::text LIKE $1",  # noqa: S608 - a name
            f"%{word}%",
        )
        found += [name] if count["n"] else []
    return found


async def test_no_table_holds_a_word_of_what_was_said_in_it(stage: Stage) -> None:
    conversation, word = fresh_id(), f"canary{fresh_id()[2:]}"
    path = f"/conversations/{conversation}"
    await stage.rig.client.put(path, json={"title": word, "agentId": "clerk"})
    call = replace(a_call("A", SHIP), arguments=f'{{"to": "{word}"}}')
    told = together(call)
    turn = await stage.in_state(told, conversation=conversation)
    await stage.rig.post(f"/turns/{turn['turnId']}/cancel")
    await stage.answer(turn, "TOOL_RESULT", callId="A", output=word)
    await stage.rig.post(f"{path}/messages", {"content": word}, Idempotency_Key=word)
    queued = {"content": f"{word}!", "whenRunning": "queue"}
    await stage.rig.post(f"{path}/messages", queued)
    assert len(await tables_that_say(stage, word)) >= 5

    gone = await stage.rig.client.delete(path)

    assert gone.is_success, gone.text
    assert await tables_that_say(stage, word) == []


async def test_what_executors_were_told_of_it_under_a_key_goes_as_well(stage: Stage) -> None:
    told = together(a_call("A", SHIP))
    tenant, body = fresh_id(), {"executor": "van 7", "limit": 2}
    async with stage.rig.signed_in_as(Role.OPERATOR, tenant=tenant) as executor:

        async def claimed(key: str, *conversations: str) -> None:
            for each in conversations:
                await stage.in_state(told, client=executor, conversation=each)
            headers = {"Idempotency-Key": key}
            answer = await executor.post("/external-calls/claim", json=body, headers=headers)
            assert len(answer.json()["items"]) == len(conversations)

        await claimed("k1", "c-1", "c-2")
        await claimed("k2", "c-10")

        assert (await executor.delete("/conversations/c-1")).is_success

        kept = "SELECT key FROM idempotency_keys WHERE tenant_id = $1"
        assert [row["key"] for row in await stage.database.rows(kept, tenant)] == ["k2"]


async def test_what_was_brought_along_hidden_and_gone_on_from_goes_too(stage: Stage) -> None:
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "pay"}]},
    ]
    keys = [fresh_id() for _ in range(4)]
    body = {"history": history, "agentId": "clerk"}
    made = await stage.rig.post("/conversations", body, Idempotency_Key=keys[0])
    conversation = made.json()["conversationId"]
    path = f"/conversations/{conversation}"
    first = (await stage.rig.client.get(f"{path}/messages")).json()["items"][0]["messageId"]
    to = {"messageId": first}
    assert (await stage.rig.post(f"{path}/revert", to, Idempotency_Key=keys[1])).is_success
    resumed = await stage.rig.post(f"{path}/resume", {}, Idempotency_Key=keys[2])
    turn = resumed.json()["turnId"]
    await stage.rig.post(f"/turns/{turn}/cancel")
    fork = await stage.rig.post(f"/turns/{turn}/fork", Idempotency_Key=keys[3])

    assert (await stage.rig.client.delete(path)).status_code == 204

    left = await rows_left(stage, conversation, turn)
    assert {name for name, n in left.items() if n} == {"audit"}
    kept = await stage.rig.rows("SELECT key FROM idempotency_keys WHERE key = ANY($1)", keys)
    assert [row["key"] for row in kept] == keys[3:], "the fork's reply is of its own conversation"
    assert (await stage.rig.client.get(f"/turns/{fork.json()['turnId']}")).status_code == 200


@pytest.mark.parametrize("state", FREE)
async def test_a_turn_that_ends_at_once_is_ended_first(stage: Stage, state: str) -> None:
    turn, request = await stage.in_state(STATES[state]()), fresh_id()

    gone = await stage.rig.client.delete(
        f"/conversations/{turn['conversationId']}", headers={"X-Request-Id": request}
    )

    assert gone.status_code == 204
    audited = await stage.rig.rows(
        "SELECT action, outcome FROM audit WHERE request_id = $1 ORDER BY seq", request
    )
    has_ended = state in {"COMPLETED", "FAILED", "CANCELLED"}
    expected = ["DELETE_CONVERSATION"] if has_ended else ["CANCEL", "DELETE_CONVERSATION"]
    assert [row["action"] for row in audited] == expected


@pytest.mark.parametrize("state", AT_WORK)
async def test_a_turn_at_work_is_in_the_way(stage: Stage, state: str) -> None:
    turn, request = await stage.in_state(STATES[state]()), fresh_id()

    refused = await stage.rig.client.delete(
        f"/conversations/{turn['conversationId']}", headers={"X-Request-Id": request}
    )

    problem = assert_problem(refused, 409, "conversation_busy")
    assert problem["turnId"] == turn["turnId"]
    assert await unchanged(stage.rig, turn)
    assert await stage.rig.rows(
        "SELECT action, outcome, code FROM audit WHERE request_id = $1", request
    ) == [{"action": "DELETE_CONVERSATION", "outcome": "refused", "code": "conversation_busy"}]


async def test_what_is_queued_opens_no_turn_any_more(stage: Stage) -> None:
    told = Told().begun().queued("q", "m8").queued("q", "m9").gave_up(QUOTA)
    turn = await stage.in_state(told)

    gone = await stage.rig.client.delete(f"/conversations/{turn['conversationId']}")

    assert gone.status_code == 204
    left = await rows_left(stage, turn["conversationId"], turn["turnId"])
    assert {name for name, n in left.items() if n} == {"audit"}


async def test_a_turn_whose_calls_are_outside_is_told_that_they_are_not_wanted(
    stage: Stage,
) -> None:
    turn = await stage.in_state(together(a_call("A", SHIP), a_call("B", SHIP)))
    path = f"/conversations/{turn['conversationId']}"

    assert (await stage.rig.client.delete(path)).status_code == 204

    late = await stage.answer(turn, "TOOL_RESULT", callId="A", output="done")
    assert_problem(late, 404, "turn_not_found")


async def test_only_the_owner_and_operators_delete_a_conversation(stage: Stage) -> None:
    async with (
        stage.rig.signed_in_as(Role.USER, actor=fresh_id()) as owner,
        stage.rig.signed_in_as(Role.USER, actor=fresh_id()) as stranger,
        stage.rig.signed_in_as(Role.OPERATOR, tenant="elsewhere") as foreigner,
    ):
        turns = [await stage.in_state(STATES["COMPLETED"](), client=owner) for _ in range(2)]
        first, second = [f"/conversations/{turn['conversationId']}" for turn in turns]

        for nobody in (stranger, foreigner):
            assert_problem(await nobody.delete(first), 404, "conversation_not_found")
        assert (await owner.delete(first)).status_code == 204
        assert (await stage.rig.client.delete(second)).status_code == 204


async def test_a_deleted_conversation_can_begin_anew(stage: Stage) -> None:
    turn = await stage.in_state(STATES["COMPLETED"]())
    path = f"/conversations/{turn['conversationId']}"
    await stage.rig.client.delete(path)

    again = await stage.rig.post(f"{path}/messages", {"content": "hello", "messageId": "m1"})

    assert again.status_code == 202
    assert again.json()["turnId"] != turn["turnId"]
    said = (await stage.rig.client.get(f"{path}/messages")).json()["items"]
    assert [each["position"] for each in said] == [0]


async def test_whoever_follows_the_turn_is_let_go(stage: Stage) -> None:
    turn = await stage.in_state(STATES["WAITING_FOR_MODEL"]())
    path = f"/turns/{turn['turnId']}/events?after={turn['version']}"

    async with asyncio.timeout(10), stage.rig.client.stream("GET", path) as events:
        await stage.rig.client.delete(f"/conversations/{turn['conversationId']}")
        await events.aread()

    assert events.status_code == 200
