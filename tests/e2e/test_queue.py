"""Messages that wait for a turn at work, over HTTP, with a worker, tools and races."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import httpx

from tests.e2e.conftest import Stage
from tests.support.oracles import Record, check_everything
from tests.support.polling import eventually
from tests.support.service import Service, running_service
from tests.support.sizes import size
from tests.support.story import MODEL, clerk

REPEATS = size(20, soak=500)
AT_ONCE = 20
DONE = {"text": "Done."}
SLOWLY = {"name": "look_up_slowly", "arguments": '{"what": "a"}'}
QUICKLY = [
    {"id": "B", "name": "pay", "arguments": '{"amount": 2}'},
    {"id": "C", "name": "look_up", "arguments": '{"what": "c"}'},
]
ONE_SLOW = {"calls": [SLOWLY | {"id": "A"}, *QUICKLY]}
TWO_SLOW = {"calls": [SLOWLY | {"id": "A"}, SLOWLY | {"id": "D"}, *QUICKLY]}


@asynccontextmanager
async def at_work(stage: Stage, *, parallel_tools: int = 1) -> AsyncGenerator[Service]:
    agents = [clerk(stage.ledger, parallel_tools=parallel_tools)]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        yield service


async def post(
    service: Service, message_id: str, when: str = "reject", *, conversation: str = "ses_1"
) -> httpx.Response:
    return await service.client.post(
        f"/conversations/{conversation}/messages",
        json={
            "content": f"This is {message_id}.",
            "messageId": message_id,
            "agentId": "clerk",
            "whenRunning": when,
        },
    )


async def with_a_tool_in_flight(stage: Stage, service: Service, *, tools: int = 1) -> str:
    """A turn whose tool waits behind the gate."""
    turn_id: str = (await post(service, "m1")).json()["turnId"]

    async def entered() -> bool:
        return len(stage.ledger.effects(turn_id)) == tools

    await eventually(entered)
    return turn_id


async def messages(service: Service) -> list[dict[str, Any]]:
    answer = await service.client.get("/conversations/ses_1/messages")
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def shown(items: Sequence[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """Role, and whose result or which message it is."""
    return [(m["role"], m.get("outcome") or m.get("messageId") or m["content"]) for m in items]


async def test_case_91_a_message_that_steers_keeps_what_was_done_and_stops_what_was_not(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [ONE_SLOW, DONE])
    async with at_work(stage) as service:
        turn_id = await with_a_tool_in_flight(stage, service)
        queued = await post(service, "m2", "steer")
        stage.ledger.open_gate()
        ended = await service.at_rest(turn_id)
        said = await messages(service)

    assert (queued.status_code, queued.json()["turnId"]) == (202, turn_id)
    assert (ended["status"], ended["queue"]) == ("COMPLETED", [])
    assert shown(said) == [
        ("user", "m1"),
        ("assistant", ""),
        ("tool", "completed"),
        ("tool", "superseded"),
        ("tool", "superseded"),
        ("user", "m2"),
        ("assistant", "Done."),
    ]
    assert stage.ledger.tools(turn_id) == ["look_up_slowly"]
    (record,) = await check_everything(stage.dsn, stage.ledger)
    assert record.types.count("TOOL_SKIPPED") == 2
    assert "TOOL_INTERRUPTED" not in record.types


async def test_case_92_a_tool_in_flight_is_not_killed_and_its_result_comes_before_the_message(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [TWO_SLOW, DONE])
    async with at_work(stage, parallel_tools=2) as service:
        turn_id = await with_a_tool_in_flight(stage, service, tools=2)
        await post(service, "m2", "steer")
        stage.ledger.open_gate()
        ended = await service.at_rest(turn_id)
        said = await messages(service)

    assert ended["status"] == "COMPLETED"
    assert [m["outcome"] for m in said if m["role"] == "tool"] == [
        "completed",
        "completed",
        "superseded",
        "superseded",
    ]
    assert {m["content"] for m in said[2:4]} == {"found a at last"}
    assert shown(said)[6] == ("user", "m2")
    assert stage.ledger.tools(turn_id) == ["look_up_slowly"] * 2
    await check_everything(stage.dsn, stage.ledger)


async def test_case_93_a_queued_message_opens_the_next_turn_exactly_once(stage: Stage) -> None:
    stage.provider.script(MODEL, [ONE_SLOW, DONE, DONE, DONE])
    async with at_work(stage) as service:
        first = await with_a_tool_in_flight(stage, service)
        queued = [await post(service, message_id, "queue") for message_id in ("m2", "m3")]
        assert {answer.json()["turnId"] for answer in queued} == {first}
        stage.ledger.open_gate()
        assert (await service.at_rest(first))["status"] == "COMPLETED"
        again = await asyncio.gather(*(post(service, "m2", "queue") for _ in range(3)))
        [second] = {answer.json()["turnId"] for answer in again}
        await service.at_rest(second)
        third = (await post(service, "m3")).json()["turnId"]
        await service.at_rest(third)
        said = await messages(service)

    assert len({first, second, third}) == 3
    by_turn = [(m["turnId"], m["messageId"]) for m in said if m["role"] == "user"]
    assert by_turn == [(first, "m1"), (second, "m2"), (third, "m3")]
    every = await check_everything(stage.dsn, stage.ledger)
    assert [record.turn.status for record in every] == ["COMPLETED"] * 3
    assert sorted(stage.ledger.tools(first)) == ["look_up", "look_up_slowly", "pay"]


async def test_a_model_call_in_flight_is_not_aborted_and_its_answer_is_kept(stage: Stage) -> None:
    slow = {"text": "word " * 40, "chunks": 40, "delay_ms": 10}
    stage.provider.script(MODEL, [slow, DONE])
    async with at_work(stage) as service:
        turn_id = (await post(service, "m1")).json()["turnId"]

        async def is_writing() -> bool:
            return bool((await service.turn(turn_id))["counters"]["modelAttempts"])

        await eventually(is_writing)
        await post(service, "m2", "steer")
        await service.at_rest(turn_id)
        said = await messages(service)

    assert shown(said) == [
        ("user", "m1"),
        ("assistant", "word " * 40),
        ("user", "m2"),
        ("assistant", "Done."),
    ]
    assert [request["status"] for request in stage.provider.requests(MODEL)] == [200, 200]
    await check_everything(stage.dsn, stage.ledger)


async def test_messages_that_come_at_any_moment_are_each_said_once(stage: Stage) -> None:
    chance = Random(7)  # noqa: S311 - to repeat, not to hide
    slow = {"text": "word " * 20, "chunks": 20, "delay_ms": 1}
    stage.provider.script(MODEL, [slow] * 9)
    everything = {"m1": "reject", "q1": "queue", "q2": "queue", "s1": "steer", "s2": "steer"}

    async with at_work(stage) as one, at_work(stage) as two:

        async def conversation(n: int) -> None:
            name = f"ses_{n}"
            await post(one, "m1", conversation=name)

            async def sent(service: Service, message_id: str) -> None:
                await asyncio.sleep(chance.uniform(0, 0.12))  # any moment: that is the point
                answer = await post(service, message_id, everything[message_id], conversation=name)
                assert answer.status_code == 202, answer.text

            later = [m for m in everything if m != "m1"]
            await asyncio.gather(*(sent(s, m) for m in later for s in (one, two)))

        await a_few_at_once(conversation, one)

    said = said_in(await check_everything(stage.dsn, stage.ledger))
    assert said == {f"ses_{n}": Counter(list(everything)) for n in range(REPEATS)}


async def test_a_message_taken_back_at_any_moment_is_said_or_gone_and_its_sender_knows(
    stage: Stage,
) -> None:
    chance = Random(11)  # noqa: S311 - to repeat, not to hide
    slow = {"text": "word " * 20, "chunks": 20, "delay_ms": 1}
    stage.provider.script(MODEL, [slow] * 9)
    answers: dict[str, int] = {}

    async with at_work(stage) as service:

        async def conversation(n: int) -> None:
            name = f"ses_{n}"
            await post(service, "m1", conversation=name)
            assert (await post(service, "q1", "queue", conversation=name)).status_code == 202
            await asyncio.sleep(chance.uniform(0, 0.12))  # any moment
            taken = await service.client.delete(f"/conversations/{name}/queue/q1")
            answers[name] = taken.status_code

        await a_few_at_once(conversation, service)

    assert set(answers.values()) <= {200, 404}
    said = said_in(await check_everything(stage.dsn, stage.ledger))
    for name, status in answers.items():
        assert said[name]["q1"] == (0 if status == 200 else 1)


async def a_few_at_once(
    conversation: Callable[[int], Coroutine[None, None, None]], service: Service
) -> None:
    """So many conversations, in groups: what is tried is the moment, not the load."""
    for first in range(0, REPEATS, AT_ONCE):
        await asyncio.gather(*map(conversation, range(first, first + AT_ONCE)))
        await everything_ended(service)


async def everything_ended(service: Service) -> None:
    async def nothing_is_active() -> bool:
        conversations = (await service.client.get("/conversations?limit=200")).json()["items"]
        return all(each["activeTurn"] is None for each in conversations)

    await eventually(nothing_is_active)


def said_in(every: Sequence[Record]) -> dict[str, Counter[str]]:
    """What users said, by conversation."""
    found: dict[str, Counter[str]] = {}
    for record in every:
        said = found.setdefault(record.turn.identity.conversation_id, Counter())
        said.update(record.user_messages)
    return found
