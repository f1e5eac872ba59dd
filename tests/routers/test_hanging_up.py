"""A caller that hangs up before it is answered: the turn goes on, or pauses if that was asked."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.http.rig import Rig, fresh_id
from tests.support.polling import eventually

WAYS: dict[str, dict[str, str]] = {
    "an answer that waits": {"Prefer": "wait=60"},
    "a stream": {"Accept": "text/event-stream"},
}


async def hung_up(rig: Rig, way: str, query: str) -> dict[str, Any]:
    """A turn at work whose caller has hung up."""
    conversation = fresh_id()
    sending = asyncio.create_task(
        rig.client.post(
            f"/conversations/{conversation}/messages{query}",
            json={"content": "hello", "agentId": "mute"},
            headers=WAYS[way],
        )
    )

    async def at_work() -> dict[str, Any] | None:
        found = (await rig.client.get("/turns", params={"conversationId": conversation})).json()
        begun = [turn for turn in found["items"] if turn["counters"]["modelAttempts"]]
        return begun[0] if begun else None

    turn = await eventually(at_work)
    sending.cancel()
    with suppress(asyncio.CancelledError):
        await sending
    return turn


@pytest.mark.parametrize("way", WAYS)
async def test_case_138_a_turn_is_paused_when_its_caller_hangs_up_if_that_was_asked(
    rig: Rig, way: str
) -> None:
    turn = await hung_up(rig, way, "?onDisconnect=pause")

    async def paused() -> dict[str, Any] | None:
        found = await rig.service.turn(turn["turnId"])
        return found if found["status"] == "PAUSED" else None

    found = await eventually(paused)
    assert found["pause"]["cause"] == "person"
    audited = "SELECT actor_id FROM audit WHERE turn_id = $1 AND action = 'PAUSE'"
    assert len(await rig.rows(audited, turn["turnId"])) == 1


@pytest.mark.parametrize("query", ["", "?onDisconnect=continue"])
@pytest.mark.parametrize("way", WAYS)
async def test_case_138_a_turn_goes_on_when_its_caller_hangs_up(
    rig: Rig, way: str, query: str
) -> None:
    turn = await hung_up(rig, way, query)
    other = await hung_up(rig, way, "?onDisconnect=pause")

    async def paused() -> bool:
        return str((await rig.service.turn(other["turnId"]))["status"]) == "PAUSED"

    await eventually(paused)  # so that much time has passed

    assert (await rig.service.turn(turn["turnId"]))["status"] == "RUNNING"
    await rig.post(f"/turns/{turn['turnId']}/cancel")


@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_is_not_paused_when_its_caller_has_the_answer(rig: Rig, way: str) -> None:
    answer = await rig.client.post(
        f"/conversations/{fresh_id()}/messages?onDisconnect=pause",
        json={"content": "hello", "agentId": "clerk"},
        headers=WAYS[way],
    )

    location = answer.headers["Location"]
    turn = (await rig.client.get(location)).json()
    assert turn["status"] == "COMPLETED"
    assert turn["pause"] is None
