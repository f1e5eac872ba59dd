"""What a provider said is for operators only, wherever it might show."""

from typing import Any

import httpx
import pytest

from app.services.principal import Role
from tests.http.rig import SECRET_WORDS, Rig, assert_problem, fresh_id, outage
from tests.routers.test_events import events_in

SAFE = {"failureId", "type", "message", "retryAfterMillis", "tokenLimitPhase", "occurredAt"}
QUOTA = "You exceeded your current quota"


async def turn_of(client: httpx.AsyncClient, text: str, agent: str) -> dict[str, Any]:
    """A turn of a client's own, once it rests."""
    answer = await client.post(
        f"/conversations/{fresh_id()}/messages",
        json={"content": text, "agentId": agent},
        headers={"Prefer": "wait=20"},
    )
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_an_operator_reads_the_whole_failure(rig: Rig) -> None:
    turn = await rig.waiting()

    assert turn["suspension"]["modelFailure"]["message"].startswith(QUOTA)
    assert turn["suspension"]["modelFailure"]["errorCode"] == "insufficient_quota"


async def test_a_user_reads_of_a_failure_what_is_safe(rig: Rig) -> None:
    async with rig.signed_in_as(Role.USER) as user:
        turn = await turn_of(user, outage("quota"), "clerk")
        listed = await user.get("/turns", params={"conversationId": turn["conversationId"]})
        stale = await user.post(f"/turns/{turn['turnId']}/resume", json={"failureId": "x"})
        await user.post(f"/turns/{turn['turnId']}/cancel")
        events = await user.get(f"/turns/{turn['turnId']}/events")

    failure = turn["suspension"]["modelFailure"]
    assert set(failure) == SAFE
    assert failure["type"] == "QUOTA_EXCEEDED"
    assert failure["message"] == turn["message"]
    suspended = [
        e for e in events_in(events.text) if e["type"] in {"TURN_SUSPENDED", "MODEL_FAILED"}
    ]
    assert [set(event["data"]["modelFailure"]) for event in suspended] == [SAFE, SAFE]
    for text in (listed.text, stale.text, events.text, str(turn)):
        assert QUOTA not in text
        assert "insufficient_quota" not in text


async def test_the_safe_words_of_a_failure_are_in_the_readers_language(rig: Rig) -> None:
    async with rig.signed_in_as(Role.USER) as user:
        turn = await turn_of(user, outage("quota"), "clerk")
        path, chinese = f"/turns/{turn['turnId']}", {"Accept-Language": "zh"}
        found = (await user.get(path, headers=chinese)).json()
        await user.post(f"{path}/cancel")
        events = events_in((await user.get(f"{path}/events", headers=chinese)).text)

    [failed] = [event["data"] for event in events if event["type"] == "MODEL_FAILED"]
    assert found["message"] != turn["message"]
    assert found["suspension"]["modelFailure"]["message"] == found["message"]
    assert failed["modelFailure"]["message"] == found["message"]


async def test_a_refused_request_is_told_to_operators_in_the_providers_words(rig: Rig) -> None:
    turn = await rig.failed()
    theirs = await rig.client.get(f"/turns/{turn['turnId']}/events")
    async with rig.signed_in_as(Role.USER) as user:
        own = await turn_of(user, "hello", "strict")
        events = await user.get(f"/turns/{own['turnId']}/events")

    assert SECRET_WORDS in theirs.text
    assert events_in(events.text)[-1]["data"] == {"reason": "request_refused"}
    assert SECRET_WORDS not in events.text + str(own)


async def test_words_in_place_of_a_stop_value_are_for_operators(rig: Rig) -> None:
    turns: list[dict[str, Any]] = []
    async with rig.signed_in_as(Role.USER) as user:
        for stop in (SECRET_WORDS, "made_up"):
            rig.provider.script("quick", [{"text": "Half.", "stop": stop}])
            turns.append(await turn_of(user, "hello", "clerk"))
        rig.provider.simulation.reset("quick")
        paths = [f"/turns/{turn['turnId']}/events" for turn in turns]
        by_user = [await user.get(path) for path in paths]
    by_operator = [await rig.client.get(path) for path in paths]

    def told(answers: list[httpx.Response]) -> list[str | None]:
        events = [event for answer in answers for event in events_in(answer.text)]
        return [event["data"]["rawStop"] for event in events if event["type"] == "MODEL_STOPPED"]

    assert told(by_user) == [None, "made_up"]
    assert told(by_operator) == [SECRET_WORDS, "made_up"]
    assert SECRET_WORDS not in str(turns) + by_user[0].text


async def test_a_viewer_reads_its_own_conversations_and_commands_nothing(rig: Rig) -> None:
    actor = fresh_id()
    async with rig.signed_in_as(Role.USER, actor=actor) as user:
        turn = await turn_of(user, outage("quota"), "clerk")
    path = f"/turns/{turn['turnId']}"

    async with rig.signed_in_as(Role.VIEWER, actor=actor) as viewer:
        found = await viewer.get(path)
        refused = [
            await viewer.post(f"{path}/resume", json={"failureId": turn["failureId"]}),
            await viewer.post(f"{path}/cancel"),
            await viewer.post(
                f"/conversations/{turn['conversationId']}/messages", json={"content": "hi"}
            ),
            await viewer.put(f"/conversations/{fresh_id()}"),
            await viewer.post("/conversations"),
        ]

    assert set(found.json()["suspension"]["modelFailure"]) == SAFE
    for answer in refused:
        assert_problem(answer, 403, "forbidden")
    assert (await rig.service.turn(turn["turnId"]))["version"] == turn["version"]


@pytest.mark.parametrize("end", ["%0A", "%0a%0A", "/", "%00", "%0D", "%09"])
async def test_no_spelling_of_an_address_goes_around_the_audit(rig: Rig, end: str) -> None:
    actor = fresh_id()
    async with rig.signed_in_as(Role.USER, actor=actor) as user:
        turn = await turn_of(user, outage("quota"), "clerk")
    path = f"/turns/{turn['turnId']}"

    async with rig.signed_in_as(Role.VIEWER, actor=actor) as viewer:
        answers = [
            await viewer.post(f"{path}/resume{end}", json={"failureId": turn["failureId"]}),
            await viewer.post(f"{path}/cancel{end}"),
        ]

    assert {answer.status_code for answer in answers} <= {403, 404}
    assert (await rig.service.turn(turn["turnId"]))["version"] == turn["version"]
