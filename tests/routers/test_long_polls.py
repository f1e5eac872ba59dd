"""`GET /turns/{id}?wait=30` with `If-None-Match`: the turn when it is another, or 304."""

import asyncio
import time
from typing import Any

import httpx
import pytest

from tests.http.rig import Rig, assert_problem


async def polled(
    rig: Rig, turn: dict[str, Any], wait: float | str | None, tag: str | None = None
) -> httpx.Response:
    tag = f'"{turn["version"]}"' if tag is None else tag
    params = {} if wait is None else {"wait": str(wait)}
    return await rig.client.get(
        f"/turns/{turn['turnId']}", params=params, headers={"If-None-Match": tag}
    )


@pytest.mark.parametrize("tag", ['"{}"', 'W/"{}"', '"1", "{}"'])
async def test_a_turn_that_the_caller_has_is_not_sent_again(
    rig: Rig, still: dict[str, Any], tag: str
) -> None:
    answer = await polled(rig, still, None, tag.format(still["version"]))

    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["ETag"] == f'"{still["version"]}"'


@pytest.mark.parametrize("tag", ['"1"', "x", ""])
async def test_a_turn_that_the_caller_does_not_have_is_sent_at_once(
    rig: Rig, still: dict[str, Any], tag: str
) -> None:
    answer = await polled(rig, still, 60, tag)

    assert (answer.status_code, answer.json()["version"]) == (200, still["version"])


async def test_without_a_tag_nothing_is_waited_for(rig: Rig, still: dict[str, Any]) -> None:
    answer = await rig.client.get(f"/turns/{still['turnId']}", params={"wait": 60})

    assert answer.json()["version"] == still["version"]


async def test_a_long_poll_ends_when_the_time_is_over(rig: Rig, still: dict[str, Any]) -> None:
    began = time.monotonic()

    answer = await polled(rig, still, 1)

    assert answer.status_code == 304
    assert time.monotonic() - began >= 1


async def test_a_long_poll_ends_when_the_turn_changes(rig: Rig) -> None:
    turn = await rig.waiting()
    async with asyncio.TaskGroup() as tasks:
        polling = tasks.create_task(polled(rig, turn, 60))
        await rig.service.resume(turn["turnId"], {"failureId": turn["failureId"]})

    assert polling.result().status_code == 200
    assert polling.result().json()["version"] > turn["version"]


async def test_a_long_poll_of_a_turn_that_is_deleted_meanwhile_finds_none(rig: Rig) -> None:
    turn = await rig.completed()
    async with asyncio.TaskGroup() as tasks:
        polling = tasks.create_task(polled(rig, turn, 60))
        deleting = rig.client.delete(f"/conversations/{turn['conversationId']}")
        await tasks.create_task(deleting)

    assert_problem(polling.result(), 404, "turn_not_found")


@pytest.mark.parametrize("wait", [-1, 61, "x"])
async def test_a_time_that_is_none_is_refused(
    rig: Rig, still: dict[str, Any], wait: float | str
) -> None:
    assert (await polled(rig, still, wait)).status_code == 422
