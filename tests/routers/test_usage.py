"""`GET /usage`: what model calls have cost, by agent, over a time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from app.agents import Agent
from app.services.principal import Role
from tests.http.rig import Rig, assert_problem, fresh_id, running_rig
from tests.support.polling import eventually
from tests.support.postgres import PostgresServer

METER = Agent(id="meter", instructions="", model="metered")
OTHER = Agent(id="other", instructions="", model="other")
NEVER_THERE: dict[str, object] = {"status": 429, "body": {"error": {"type": "insufficient_quota"}}}
ALWAYS = {"from": "2000-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}


def spent(attempts: int, successes: int, *, tokens: tuple[Any, Any, Any], without: Any) -> Any:  # noqa: ANN401 - JSON
    """As the answer has it."""
    names = ("inputTokens", "cachedInputTokens", "outputTokens")
    return {
        "modelAttempts": attempts,
        "modelSuccesses": successes,
        **dict(zip(names, tokens, strict=True)),
        "attemptsWithout": dict(zip(names, without, strict=True)),
    }


NOTHING = spent(0, 0, tokens=(None, None, None), without=(0, 0, 0))


@pytest.fixture(scope="module")
async def metered(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Rig]:
    dsn = await postgres_server.fresh_database()
    folder = tmp_path_factory.mktemp("metered")
    async with running_rig(dsn, folder, agents=[METER, OTHER]) as running:
        yield running
    await postgres_server.drop_database(dsn)


@asynccontextmanager
async def tenant(rig: Rig) -> AsyncGenerator[tuple[str, httpx.AsyncClient]]:
    """An operator of a tenant that nobody has used."""
    name = fresh_id()
    async with rig.signed_in_as(Role.OPERATOR, tenant=name) as client:
        yield name, client


async def ask(client: httpx.AsyncClient, agent: str = "meter") -> dict[str, Any]:
    """A turn of one model call, once it rests."""
    answer = await client.post(
        f"/conversations/{fresh_id()}/messages",
        json={"content": "hello", "agentId": agent},
        headers={"Prefer": "wait=20"},
    )
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def usage(client: httpx.AsyncClient, **range_of: str) -> dict[str, Any]:
    answer = await client.get("/usage", params=range_of or ALWAYS)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def says(text: str, sent: int | None = None, written: int | None = None) -> dict[str, object]:
    """A round of the script, with its figures where there are some."""
    if sent is None:
        return {"text": text}
    return {"text": text, "usage": {"prompt_tokens": sent, "completion_tokens": written}}


async def test_tokens_are_summed_in_all_and_by_agent(metered: Rig) -> None:
    metered.provider.script("metered", [says("Yes.", 10, 3)])
    metered.provider.script("other", [says("No.", 100, 30)])
    async with tenant(metered) as (_, client):
        await ask(client)
        await ask(client)
        await ask(client, "other")
        found = await usage(client)

    assert found["total"] == spent(3, 3, tokens=(120, None, 36), without=(0, 3, 0))
    assert found["agents"] == [
        {"agentId": "meter"} | spent(2, 2, tokens=(20, None, 6), without=(0, 2, 0)),
        {"agentId": "other"} | spent(1, 1, tokens=(100, None, 30), without=(0, 1, 0)),
    ]


async def test_a_failure_and_its_retry_are_two_attempts_and_the_unknown_is_said(
    metered: Rig,
) -> None:
    faulty = says("Yes.", 10, 3) | {"faults": [NEVER_THERE | {"times": 1}]}
    metered.provider.script("metered", [faulty])
    async with tenant(metered) as (_, client):
        waiting = await ask(client)
        await client.post(
            f"/turns/{waiting['turnId']}/resume",
            json={"failureId": waiting["failureId"]},
            headers={"Prefer": "wait=20"},
        )
        found = await usage(client)
        turn = (await client.get(f"/turns/{waiting['turnId']}")).json()

    assert found["total"] == spent(2, 1, tokens=(10, None, 3), without=(1, 2, 1))
    assert turn["counters"]["modelAttempts"] == 2
    assert turn["usage"]["inputTokens"] == 10


async def test_what_nobody_has_measured_is_null_and_not_zero(metered: Rig) -> None:
    metered.provider.script("metered", [says("Yes.")])
    async with tenant(metered) as (_, client):
        before = await usage(client)
        await ask(client)
        found = await usage(client)

    assert (before["total"], before["agents"]) == (NOTHING, [])
    assert found["total"] == spent(1, 1, tokens=(None, None, None), without=(1, 1, 1))


async def test_an_answer_that_is_none_has_cost_what_it_cost(metered: Rig) -> None:
    metered.provider.script("metered", [says("", 10, 4_000) | {"stop": "length"}])
    async with tenant(metered) as (_, client):
        turn = await ask(client)
        found = await usage(client)

    assert turn["status"] == "WAITING_FOR_MODEL"
    assert turn["usage"]["outputTokens"] == 4_000
    assert found["total"] == spent(1, 0, tokens=(10, None, 4_000), without=(0, 1, 0))


async def test_a_call_that_is_dropped_counts_as_an_attempt(metered: Rig) -> None:
    hangs = {"text": "", "faults": [{"times": 1, "hang": True}]}
    metered.provider.script("metered", [hangs])
    async with tenant(metered) as (_, client):
        sent = await client.post(
            f"/conversations/{fresh_id()}/messages", json={"content": "hello", "agentId": "meter"}
        )
        path = f"/turns/{sent.json()['turnId']}"
        await eventually(lambda: is_asked(metered))
        in_flight = await usage(client)
        await client.post(f"{path}/cancel")
        await client.get(f"{path}/events")
        found = await usage(client)

    assert in_flight["total"] == NOTHING
    assert found["total"] == spent(1, 0, tokens=(None, None, None), without=(1, 1, 1))


async def is_asked(metered: Rig) -> bool:
    """The hanging request is on its way."""
    return bool(metered.provider.requests("metered"))


async def test_users_see_what_their_own_conversations_have_cost(metered: Rig) -> None:
    metered.provider.script("metered", [says("Yes.", 10, 3)])
    async with tenant(metered) as (name, operator):
        for actor, times in (("ann", 1), ("ben", 2)):
            async with metered.signed_in_as(Role.USER, actor=actor, tenant=name) as user:
                for _ in range(times):
                    await ask(user)
        async with metered.signed_in_as(Role.VIEWER, actor="ben", tenant=name) as viewer:
            of_ben = await usage(viewer)
        async with metered.signed_in_as(Role.USER, actor="eve", tenant=name) as user:
            of_eve = await usage(user)
        of_all = await usage(operator)

    assert (of_ben["total"]["modelAttempts"], of_ben["total"]["inputTokens"]) == (2, 20)
    assert (of_eve["total"], of_eve["agents"]) == (NOTHING, [])
    assert of_all["total"]["modelAttempts"] == 3


async def test_a_time_begins_with_from_and_ends_before_to(metered: Rig) -> None:
    metered.provider.script("metered", [says("Yes.", 10, 3)])
    async with tenant(metered) as (name, client):
        await ask(client)
        moment = "2026-03-01T12:00:00+01:00"
        await metered.rows(
            "UPDATE model_usage SET ended_at = '2026-03-01T11:00:00Z' WHERE tenant_id = $1", name
        )
        found = [
            await usage(client, **{"from": since, "to": until})
            for since, until in (
                (moment, "2026-03-01T11:00:00.000001Z"),
                ("2026-03-01T00:00:00Z", moment),
                ("2026-03-01T11:00:00.5Z", "2026-03-02T00:00:00Z"),
            )
        ]

    assert [each["total"]["modelAttempts"] for each in found] == [1, 0, 0]
    assert found[0]["from"] == "2026-03-01T11:00:00Z"


async def test_without_a_time_it_is_this_month(metered: Rig) -> None:
    async with tenant(metered) as (_, client):
        answer = await client.get("/usage")
        [[now]] = [row.values() for row in await metered.rows("SELECT clock_timestamp()")]

    body = answer.json()
    month = f"{now:%Y-%m}-01T00:00:00Z"
    assert body["from"] == month
    assert body["from"] < body["to"]
    assert body["to"].endswith("-01T00:00:00Z")


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z"),
        ("2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        ("2026-03-01T00:00:00Z", None),
        (None, "2026-03-01T00:00:00Z"),
        ("2026-03-01", "2026-04-01"),
        ("2026-03-01T00:00:00", "2026-04-01T00:00:00Z"),
        ("2026-03-01T00:00:00 01:00", "2026-04-01T00:00:00Z"),
        ("2026-02-30T00:00:00Z", "2026-04-01T00:00:00Z"),
        ("2026-03-01T24:00:00Z", "2026-04-01T00:00:00Z"),
        ("0001-01-01T00:00:00+14:00", "2026-04-01T00:00:00Z"),
        ("2026-03-01T00:00:00Z", "9999-12-31T23:59:59-14:00"),
        ("0000-01-01T00:00:00Z", "2026-04-01T00:00:00Z"),
        ("1700000000", "1800000000"),
        ("yesterday", "today"),
        ("", ""),
        ("2026-03-01T00:00:00Z\0", "2026-04-01T00:00:00Z"),
        ("２026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"),  # noqa: RUF001 - a digit, of another width
    ],
)
async def test_a_time_that_is_none_is_refused(
    rig: Rig, since: str | None, until: str | None
) -> None:
    given = {"from": since, "to": until}

    answer = await rig.client.get(
        "/usage", params={name: value for name, value in given.items() if value is not None}
    )

    assert_problem(answer, 422, "payload_invalid")


async def test_the_earliest_and_the_latest_time_are_times(rig: Rig) -> None:
    answer = await rig.client.get(
        "/usage", params={"from": "0001-01-01t00:00:00z", "to": "9999-12-31T23:59:59.999999Z"}
    )

    assert answer.status_code == 200


async def test_nobody_sees_what_another_tenant_has_spent(rig: Rig) -> None:
    await rig.completed()
    async with tenant(rig) as (_, client):
        found = await usage(client)

    assert (found["total"], found["agents"]) == (NOTHING, [])
