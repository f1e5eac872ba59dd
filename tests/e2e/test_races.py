"""Two replicas are asked at the same instant; one wins, and nobody is left guessing.

Unless a test says otherwise no worker runs during the race, so that the winner's turn stays as the
winner made it. Afterwards one does, every turn comes to its end, and all oracles look at it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeAlias

import httpx
import pytest

from tests.e2e.conftest import Stage
from tests.support.oracles import Record, check_everything
from tests.support.processes import serving
from tests.support.service import Service, SignedIn, running_service
from tests.support.sizes import size
from tests.support.story import MODEL, QUOTA, THREE_CALLS, clerk

REPEATS = size(8, soak=500)
OUTAGE = [{"text": "Done.", "faults": [QUOTA | {"times": 999}]}]
HEALTHY = [{"text": "Done."}]

Turn: TypeAlias = dict[str, Any]
Asking: TypeAlias = Coroutine[Any, Any, httpx.Response]


async def test_case_4_one_message_sent_twice_at_once_opens_one_turn_and_both_succeed(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, HEALTHY)
    async with two_replicas(stage) as (one, two):
        for n in range(REPEATS):
            first, second = await asyncio.gather(post(one, n, "m1"), post(two, n, "m1"))
            assert statuses(first, second) == [202, 202]
            assert first.json()["turnId"] == second.json()["turnId"]

    for record in await everything_ended(stage):
        assert record.user_messages == ["m1"]
        assert accepted(record) == Counter({"MESSAGE": 2})


async def test_case_4_one_message_sent_twice_at_once_to_a_waiting_turn_is_there_once(
    stage: Stage,
) -> None:
    waiting = await waiting_turns(stage)
    async with two_replicas(stage) as (one, two):
        for n, turn in enumerate(waiting):
            first, second = await asyncio.gather(post(one, n, "m2"), post(two, n, "m2"))
            assert statuses(first, second) == [202, 202]
            assert {first.json()["turnId"], second.json()["turnId"]} == {turn["turnId"]}

    for record in await everything_ended(stage):
        assert record.user_messages == ["m1", "m2"]
        assert accepted(record) == Counter({"MESSAGE": 3})


async def test_case_5_of_two_messages_at_once_to_a_waiting_turn_one_wins_and_the_other_is_told(
    stage: Stage,
) -> None:
    waiting = await waiting_turns(stage)
    losers: list[tuple[int, str]] = []
    async with two_replicas(stage) as (one, two):
        for n, turn in enumerate(waiting):
            both = await asyncio.gather(post(one, n, "m2"), post(two, n, "m3"))
            assert statuses(*both) == [202, 409]
            winner, lost = sorted(both, key=_status)
            assert winner.json()["turnId"] == turn["turnId"]
            assert lost.json()["code"] in {"conversation_busy", "version_conflict"}
            losers.append((n, "m3" if winner is both[0] else "m2"))
    await everything_ended(stage)

    async with replica(stage, with_worker=True) as service:
        for n, message_id in losers:
            again = await post(service, n, message_id)
            assert again.status_code == 202, again.text
    every = await everything_ended(stage)

    per_conversation: Counter[str] = Counter()
    for record in every:
        per_conversation[record.turn.identity.conversation_id] += len(record.user_messages)
    assert set(per_conversation.values()) == {3}


async def test_case_8_a_retry_sent_twice_at_once_is_accepted_once(stage: Stage) -> None:
    waiting = await waiting_turns(stage)
    async with two_replicas(stage) as (one, two):
        for turn in waiting:
            both = await asyncio.gather(retry(one, turn), retry(two, turn))
            assert statuses(*both) == [202, 409]
            assert max(both, key=_status).json()["code"] == "turn_not_blocked"

    for record in await everything_ended(stage):
        assert accepted(record) == Counter({"MESSAGE": 1, "RETRY_MODEL": 1})
        assert record.turn.counters.model_attempts == 2


async def test_scenario_032_of_a_message_and_a_retry_at_once_one_wins(stage: Stage) -> None:
    waiting = await waiting_turns(stage)
    async with two_replicas(stage) as (one, two):
        for n, turn in enumerate(waiting):
            both = await asyncio.gather(*mixed(n, post(one, n, "m2"), retry(two, turn)))
            assert statuses(*both) == [202, 409]
            code = max(both, key=_status).json()["code"]
            assert code in {"conversation_busy", "turn_not_blocked"}

    for record in await everything_ended(stage):
        assert record.turn.counters.model_attempts == 2


async def test_of_a_message_and_a_cancellation_at_once_both_take_effect_in_some_order(
    stage: Stage,
) -> None:
    waiting = await waiting_turns(stage)
    async with two_replicas(stage) as (one, two):
        for n, turn in enumerate(waiting):
            both = await asyncio.gather(*mixed(n, post(one, n, "m2"), cancel(two, turn)))
            assert {answer.status_code for answer in both} <= {200, 202}, [b.text for b in both]

    every = await everything_ended(stage)
    messages = [message_id for record in every for message_id in record.user_messages]
    assert Counter(messages) == Counter({"m1": REPEATS, "m2": REPEATS})
    cancelled = [record for record in every if record.turn.status == "CANCELLED"]
    assert len(cancelled) == REPEATS


async def test_case_12_two_messages_at_once_to_a_new_conversation_start_one_turn(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, HEALTHY)
    async with two_replicas(stage) as (one, two):
        for n in range(REPEATS):
            both = await asyncio.gather(post(one, n, "m1"), post(two, n, "m2"))
            assert statuses(*both) == [202, 409]
            lost = max(both, key=_status).json()
            assert lost["code"] == "conversation_busy"
            assert lost["turnId"] == min(both, key=_status).json()["turnId"]

    assert len(await everything_ended(stage)) == REPEATS


@pytest.mark.parametrize("seed", range(3))
async def test_case_54_a_cancellation_at_any_moment_of_a_worker_is_kept_and_the_turn_is_whole(
    stage: Stage, seed: int
) -> None:
    chance = Random(seed)  # noqa: S311 - to repeat, not to hide
    slow = {"text": "word " * 30, "chunks": 30, "delay_ms": 1}
    stage.provider.script(MODEL, [THREE_CALLS, slow])
    async with (
        replica(stage, with_worker=True) as one,
        replica(stage, with_worker=True) as two,
    ):

        async def cancelled_somewhen(n: int) -> Turn:
            turn = (await post(one, n, "m1")).json()
            await asyncio.sleep(chance.uniform(0, 0.15))  # any moment will do, that is the point
            answer = await cancel(two, turn)
            assert answer.status_code in {200, 202, 409}, answer.text
            return await two.at_rest(turn["turnId"])

        ended = await asyncio.gather(*map(cancelled_somewhen, range(REPEATS)))

    assert {turn["status"] for turn in ended} <= {"CANCELLED", "COMPLETED"}
    for record in await check_everything(stage.dsn, stage.ledger):
        assert record.turn.cancel_requested <= (record.turn.status == "CANCELLED")


async def test_two_processes_sent_one_message_at_once_make_one_turn_of_it(stage: Stage) -> None:
    stage.provider.script(MODEL, HEALTHY)
    place = (stage.dsn, stage.ledger, stage.provider.base_url)
    async with serving(*place) as one, serving(*place) as two:
        pairs = [
            await asyncio.gather(post(one, n, "m1"), post(two, n, "m1")) for n in range(REPEATS)
        ]
        for first, second in pairs:
            assert statuses(first, second) == [202, 202]
            assert first.json()["turnId"] == second.json()["turnId"]
            assert (await one.at_rest(first.json()["turnId"]))["finalOutput"] == "Done."

    every = await check_everything(stage.dsn, stage.ledger)
    assert [record.user_messages for record in every] == [["m1"]] * REPEATS


# --- Arranging and asking ------------------------------------------------------------------------


@asynccontextmanager
async def replica(stage: Stage, *, with_worker: bool = False) -> AsyncGenerator[Service]:
    async with running_service(
        stage.dsn, stage.settings, agents=[clerk(stage.ledger)], with_worker=with_worker
    ) as service:
        yield service


@asynccontextmanager
async def two_replicas(stage: Stage) -> AsyncGenerator[tuple[Service, Service]]:
    """Neither has a worker; their connections stand already."""
    async with replica(stage) as one, replica(stage) as two:
        await asyncio.gather(one.client.get("/readyz"), two.client.get("/readyz"))
        yield one, two


async def waiting_turns(stage: Stage) -> Sequence[Turn]:
    """A turn that waits for its model in each of the conversations, the outage over by now."""
    stage.provider.script(MODEL, OUTAGE)
    async with replica(stage, with_worker=True) as service:
        posted = await asyncio.gather(*(post(service, n, "m1") for n in range(REPEATS)))
        turns = [await service.at_rest(answer.json()["turnId"]) for answer in posted]
    assert {turn["status"] for turn in turns} == {"WAITING_FOR_MODEL"}
    stage.provider.script(MODEL, [*HEALTHY, *HEALTHY, *HEALTHY])
    return turns


async def everything_ended(stage: Stage) -> Sequence[Record]:
    """All turns, once a worker has brought them to their ends, with all oracles content."""
    async with replica(stage, with_worker=True) as service:
        turns = (await service.client.get("/turns", params={"limit": 100})).json()["items"]
        for turn in turns:
            ended = await service.at_rest(turn["turnId"])
            assert ended["status"] in {"COMPLETED", "CANCELLED"}
    return await check_everything(stage.dsn, stage.ledger)


async def post(service: SignedIn, n: int, message_id: str) -> httpx.Response:
    return await service.client.post(
        f"/conversations/ses_{n}/messages",
        json={"content": f"This is {message_id}.", "messageId": message_id, "agentId": "clerk"},
    )


async def retry(service: SignedIn, turn: Turn) -> httpx.Response:
    return await service.resume(turn["turnId"], {"failureId": turn["failureId"]}, wait=0)


async def cancel(service: SignedIn, turn: Turn) -> httpx.Response:
    return await service.client.post(f"/turns/{turn['turnId']}/cancel")


def mixed(n: int, first: Asking, second: Asking) -> tuple[Asking, Asking]:
    """Both, the one or the other a moment ahead."""
    return (first, second) if n % 2 else (second, first)


def _status(answer: httpx.Response) -> int:
    return answer.status_code


def statuses(*answers: httpx.Response) -> list[int]:
    return sorted(map(_status, answers))


def accepted(record: Record) -> Counter[str]:
    return Counter(row["action"] for row in record.audit if row["outcome"] == "accepted")
