"""What does not grow, what is not there, and what cannot be written."""

import asyncio
from pathlib import Path
from typing import Any

from tests.http.rig import Rig, assert_problem, fresh_id, outage, running_rig
from tests.support.sizes import size

_DUPLICATES = size(1_000, soak=20_000)
_AT_ONCE = 50
_FAILURES = 40


async def row_of(rig: Rig, turn: dict[str, Any]) -> int:
    """How many bytes the turn's own row takes."""
    [row] = await rig.rows(
        "SELECT pg_column_size(t.*) + octet_length(body) AS bytes FROM turns t WHERE turn_id = $1",
        turn["turnId"],
    )
    size_now: int = row["bytes"]
    return size_now


async def test_case_148_thousands_of_duplicates_leave_the_turn_as_it_was(rig: Rig) -> None:
    turn = await rig.waiting()
    path = f"/conversations/{turn['conversationId']}/messages"
    message = {"content": "Go on.", "messageId": "m2"}
    done = (await rig.post(path, message, Prefer="wait=20")).json()
    before = await row_of(rig, turn)

    answers = [
        answer
        for _ in range(_DUPLICATES // _AT_ONCE)
        for answer in await asyncio.gather(*(rig.post(path, message) for _ in range(_AT_ONCE)))
    ]

    assert {(a.status_code, a.json()["version"]) for a in answers} == {(202, done["version"])}
    assert await row_of(rig, turn) == before
    [taken] = await rig.rows(
        "SELECT count(*) FROM received WHERE conversation_id = $1", turn["conversationId"]
    )
    assert taken["count"] == 2


async def test_case_148_failures_and_interruptions_are_in_tables_of_their_own(rig: Rig) -> None:
    turn = await rig.waiting()
    command = {"command": "REPLAN_WITH_MESSAGE", "message": {"content": ""}}
    sizes: list[int] = []
    for _ in range(_FAILURES):
        command["message"] = {"content": outage("quota")}
        answer = await rig.post(f"/turns/{turn['turnId']}/resume", command, Prefer="wait=20")
        assert answer.json()["status"] == "WAITING_FOR_MODEL"
        sizes.append(await row_of(rig, turn))

    history = await rig.client.get(f"/turns/{turn['turnId']}/failures?limit=200")
    assert len(history.json()["items"]) == _FAILURES + 1
    assert max(sizes) - min(sizes) < 50  # counters get another digit


async def test_case_134_what_cannot_be_written_is_refused_before_anything_is(rig: Rig) -> None:
    conversation = fresh_id()
    path = f"/conversations/{conversation}"
    bodies = [
        b'{"content": "\\ud800"}',
        b'{"content": [{"type": "text", "text": "half \\udfff"}]}',
        b'{"content": "x", "messageId": "\\ud83d"}',
        b'{"content": NaN}',
    ]

    answers = [
        await rig.client.post(
            f"{path}/messages", content=body, headers={"Content-Type": "application/json"}
        )
        for body in bodies
    ]

    assert all(answer.status_code in {400, 422} for answer in answers), answers
    assert_problem(await rig.client.get(path), 404, "conversation_not_found")


async def test_case_135_nothing_is_resumed_in_an_empty_store_and_no_turn_is_made(
    database_dsn: str, tmp_path: Path
) -> None:
    async with running_rig(database_dsn, tmp_path) as rig:
        answers = [
            await rig.post("/turns/turn_1/resume", {"failureId": "fail_1"}),
            await rig.post("/turns/turn_1/resume", {"command": "RESUME"}),
            await rig.post("/turns/turn_1/cancel"),
            await rig.client.get("/turns/turn_1/interruptions"),
        ]
        turns = await rig.client.get("/turns")

    for answer in answers:
        assert_problem(answer, 404, "turn_not_found")
    assert turns.json() == {"items": [], "nextCursor": None}
