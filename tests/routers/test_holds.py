"""`hold` and `POST /turns/{id}/run`: a turn that begins when somebody says so."""

from pathlib import Path
from typing import Any

import pytest

from app.agents import Agent
from tests.http.rig import Rig, assert_problem, fresh_id, running_rig, unchanged

HELLO = {"content": "hello", "agentId": "clerk", "hold": True}
NOBODYS = {"claim_epoch": 0, "claimed_by": None, "runnable_at": None}


async def held(rig: Rig, path: str | None = None) -> dict[str, Any]:
    """A turn on hold."""
    answer = await rig.post(path or f"/conversations/{fresh_id()}/messages", HELLO)
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    return await rig.service.turn(body["turnId"])


async def claims_of(rig: Rig, turn: dict[str, Any]) -> dict[str, Any]:
    [row] = await rig.rows(
        "SELECT claim_epoch, claimed_by, runnable_at FROM turns WHERE turn_id = $1", turn["turnId"]
    )
    return row


@pytest.mark.parametrize(
    "path", ["/turns", "/conversations/{}/turns", "/conversations/{}/messages"]
)
async def test_a_turn_on_hold_is_no_workers_until_it_is_run(rig: Rig, path: str) -> None:
    turn = await held(rig, path.format(fresh_id()))
    await rig.completed()  # by the worker that would have claimed it

    assert await unchanged(rig, turn)
    assert (turn["status"], turn["held"], turn["version"]) == ("READY", True, 2)
    assert turn["message"] == "The turn is on hold. It begins when it is told to run."
    assert await claims_of(rig, turn) == NOBODYS
    done = await rig.post(f"/turns/{turn['turnId']}/run", Prefer="wait=20")
    assert (done.status_code, done.json()["status"], done.json()["held"]) == (
        202,
        "COMPLETED",
        False,
    )


async def test_nobody_is_kept_waiting_for_a_turn_on_hold(rig: Rig) -> None:
    answer = await rig.post("/turns", HELLO, Prefer="wait=20")

    assert answer.json()["status"] == "READY"
    assert answer.elapsed.total_seconds() < 10


async def test_a_turn_on_hold_offers_to_be_run(rig: Rig) -> None:
    turn = await held(rig)

    assert [(each["command"], each["enabled"]) for each in turn["actions"]] == [
        ("RUN", True),
        ("PAUSE", True),
        ("CANCEL", True),
        ("MESSAGE", False),
        ("QUEUE", True),
        ("STEER", True),
    ]


async def test_a_run_may_be_answered_with_its_events(rig: Rig) -> None:
    turn = await held(rig)

    answer = await rig.post(f"/turns/{turn['turnId']}/run", Accept="text/event-stream")

    events = [line for line in answer.text.splitlines() if line.startswith(("id:", "event:"))]
    assert answer.status_code == 200
    assert events[:2] == [f"id: {turn['version'] + 1}", "event: TURN_RESUMED"]
    assert '"commandType":"RUN"' in answer.text
    assert events[-1] == "event: TURN_COMPLETED"


async def test_a_run_is_taken_once(rig: Rig) -> None:
    answer = await rig.post("/turns", HELLO | {"agentId": "mute"})
    turn = answer.json()["turnId"]

    first = await rig.post(f"/turns/{turn}/run")
    second = await rig.post(f"/turns/{turn}/run")
    await rig.post(f"/turns/{turn}/cancel")
    await rig.client.get(f"/turns/{turn}/events")  # until it has ended
    third = await rig.post(f"/turns/{turn}/run")

    assert first.status_code == 202
    assert_problem(second, 409, "turn_not_blocked")
    assert_problem(third, 409, "turn_terminal")


async def test_a_run_with_a_key_is_answered_again(rig: Rig) -> None:
    turn, key = await held(rig), fresh_id()

    first = await rig.post(f"/turns/{turn['turnId']}/run", Idempotency_Key=key)
    again = await rig.post(f"/turns/{turn['turnId']}/run", Idempotency_Key=key)

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.content == first.content
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_a_run_fits_no_turn_that_waits(rig: Rig, still: dict[str, Any]) -> None:
    answer = await rig.post(f"/turns/{still['turnId']}/run")

    refused = assert_problem(answer, 409, "wrong_command")
    assert refused["allowedActions"] == still["actions"]
    assert await unchanged(rig, still)


async def test_a_run_at_another_version_is_refused(rig: Rig) -> None:
    turn = await held(rig)
    path = f"/turns/{turn['turnId']}/run"

    refused = assert_problem(await rig.post(path, If_Match='"1"'), 412, "precondition_failed")
    assert refused["currentVersion"] == turn["version"]
    assert await unchanged(rig, turn)
    assert (await rig.post(path, If_Match=f'"{turn["version"]}"')).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        {"failureId": "f"},
        {"command": "RETRY"},
        {"command": "CONTINUE"},
        {"command": "RESUME"},
        {"command": "REPLAN_WITH_MESSAGE", "message": {"content": "no, this"}},
    ],
)
async def test_no_other_command_lets_it_go(rig: Rig, body: object) -> None:
    turn = await held(rig)

    refused = await rig.post(f"/turns/{turn['turnId']}/resume", body)

    assert assert_problem(refused, 409, "turn_not_blocked")["allowedActions"] == turn["actions"]
    assert await unchanged(rig, turn)


async def test_a_message_finds_it_busy_and_its_own_one_is_known(rig: Rig) -> None:
    turn = await held(rig)
    path = f"/conversations/{turn['conversationId']}/messages"
    own = (await rig.client.get(path)).json()["items"][0]["messageId"]

    for said in ({"content": "and?"}, HELLO, HELLO | {"agentId": "patient"}):
        assert_problem(await rig.post(path, said), 409, "conversation_busy")
    again = await rig.post(path, {"content": "hello", "messageId": own})

    assert (again.status_code, again.json()["turnId"]) == (202, turn["turnId"])
    assert await unchanged(rig, turn)


async def test_it_is_cancelled_at_once(rig: Rig) -> None:
    turn = await held(rig)

    answer = await rig.post(f"/turns/{turn['turnId']}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    assert answer.json()["held"] is False


@pytest.mark.parametrize("goes_on_by", ["resume", "message"])
async def test_a_pause_takes_the_place_of_the_hold(rig: Rig, goes_on_by: str) -> None:
    turn = await held(rig)
    paused = await rig.post(f"/turns/{turn['turnId']}/pause")
    assert (paused.status_code, paused.json()["status"]) == (200, "PAUSED")
    assert paused.json()["held"] is False
    assert_problem(await rig.post(f"/turns/{turn['turnId']}/run"), 409, "wrong_command")

    if goes_on_by == "resume":
        await rig.post(f"/turns/{turn['turnId']}/resume", {"command": "RESUME"}, Prefer="wait=20")
    else:
        await rig.service.send(turn["conversationId"], "hello")

    assert (await rig.service.turn(turn["turnId"]))["status"] == "COMPLETED"


async def test_hold_opens_a_turn_or_is_refused(rig: Rig, still: dict[str, Any]) -> None:
    running = await rig.running()

    for turn in (still, running):
        for route in ("messages", "turns"):
            answer = await rig.post(f"/conversations/{turn['conversationId']}/{route}", HELLO)
            assert_problem(answer, 409, "conversation_busy")
    assert await unchanged(rig, still)


async def test_a_turn_on_hold_survives_a_restart_and_is_still_on_hold(
    database_dsn: str, tmp_path: Path
) -> None:
    async with running_rig(database_dsn, tmp_path) as rig:
        turn = await held(rig)
    async with running_rig(database_dsn, tmp_path) as rig:
        await rig.completed()
        assert await unchanged(rig, turn)
        done = await rig.post(f"/turns/{turn['turnId']}/run", Prefer="wait=20")

    assert done.json()["status"] == "COMPLETED"


async def test_a_turn_on_hold_whose_agent_is_gone_is_not_run_but_can_be_ended(
    database_dsn: str, tmp_path: Path
) -> None:
    def clerk(version: str) -> Agent:
        return Agent(id="clerk", version=version, instructions="", model="quick")

    async with running_rig(database_dsn, tmp_path, agents=[clerk("1")]) as rig:
        turn = await held(rig)
    async with running_rig(database_dsn, tmp_path, agents=[clerk("2")]) as rig:
        found = await rig.service.turn(turn["turnId"])
        refused = await rig.post(f"/turns/{turn['turnId']}/run")
        still_there = await unchanged(rig, found)
        ended = await rig.post(f"/turns/{turn['turnId']}/cancel")

    enabled = {each["command"] for each in found["actions"] if each["enabled"]}
    assert enabled == {"PAUSE", "CANCEL", "QUEUE", "STEER"}
    assert_problem(refused, 409, "agent_version_unavailable")
    assert still_there
    assert ended.json()["status"] == "CANCELLED"
