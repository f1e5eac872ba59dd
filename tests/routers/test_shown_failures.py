"""What operators and everybody else are shown of a failure, and that it stays true."""

import re
from dataclasses import replace
from typing import Any

import pytest

from app.services.principal import Role
from app.services.top_up import TopUpLinks
from app.turn.failures import error_ref
from tests.http.rig import SECRET_WORDS, Rig, assert_problem, fresh_id, logging_as_served, outage
from tests.routers.test_events import events_in

LINK = "https://billing.example/openai"
COMMON = "https://billing.example/"


def retry_of(turn: dict[str, Any]) -> dict[str, Any]:
    """The action that retries."""
    [found] = [action for action in turn["actions"] if action["command"] == "RETRY_MODEL"]
    return dict(found)


@pytest.fixture
def with_links(rig: Rig) -> Rig:
    """The same service, where links are configured."""
    links = TopUpLinks(by_provider={"openai": LINK}, otherwise=COMMON)
    services = replace(rig.service.runtime.services, top_up=links)
    runtime = replace(rig.service.runtime, services=services)
    return replace(rig, service=replace(rig.service, runtime=runtime))


async def shown(rig: Rig, role: Role, kind: str) -> str:
    """All that somebody of a role is told of a failed turn of theirs: the turn, lists, events."""
    async with rig.signed_in_as(role if role is Role.OPERATOR else Role.USER) as owner:
        sent = await owner.post(
            f"/conversations/{fresh_id()}/messages",
            json={"content": outage(kind), "agentId": "clerk"},
            headers={"Prefer": "wait=20"},
        )
        path = f"/turns/{sent.json()['turnId']}"
        async with rig.signed_in_as(role) as reader:
            read = [await reader.get(path), await reader.get(f"{path}/failures")]
            stale = await owner.post(f"{path}/resume", json={"failureId": "x"})
            await owner.post(f"{path}/cancel")
            read.append(await reader.get(f"{path}/events"))
        assert [answer.status_code for answer in read] == [200] * len(read)
    return "\n".join(answer.text for answer in (sent, stale, *read))


async def test_operators_get_a_link_for_an_exhausted_quota_and_nobody_else(
    with_links: Rig,
) -> None:
    assert LINK in await shown(with_links, Role.OPERATOR, "quota")
    for role, kind in ((Role.USER, "quota"), (Role.VIEWER, "quota"), (Role.OPERATOR, "rate")):
        assert COMMON not in await shown(with_links, role, kind)


async def test_without_a_setting_there_is_no_link(rig: Rig) -> None:
    assert "topUpUrl" not in (await rig.waiting())["suspension"]["modelFailure"]


@pytest.mark.parametrize("kind", ["quota", "rate", "overloaded", "unavailable", "context", "auth"])
@pytest.mark.parametrize("role", [Role.USER, Role.VIEWER])
async def test_people_see_no_provider_status_code_or_reference(
    rig: Rig, role: Role, kind: str
) -> None:
    text = await shown(rig, role, kind)

    for name in ("httpStatus", "errorCode", "errorType", "errorRef", "provider"):
        assert name not in text
    for said in ("openai", "quick", "insufficient_quota", "Rate limit", "engine", "API key"):
        assert said not in text


async def test_the_reference_on_the_page_is_the_one_in_the_log(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_as_served("json"):
        turn = await rig.waiting()
    failure = turn["suspension"]["modelFailure"]

    lines = [line for line in capsys.readouterr().err.splitlines() if failure["errorRef"] in line]

    assert re.fullmatch(r"err_[A-Z2-7]{8}", failure["errorRef"])
    assert (failure["provider"], failure["model"]) == ("openai", "quick")
    assert [re.search(r'"event": ?"(\w+)"', line)[1] for line in lines] == ["model_failed"]  # type: ignore[index]  # it has one
    for said in (turn["turnId"], turn["failureId"], "429", "insufficient_quota", "openai"):
        assert said in lines[0]
    assert failure["message"] not in lines[0]


async def test_a_turn_that_failed_has_a_reference_too(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_as_served("json"):
        turn = await rig.failed()
    ref = error_ref(turn["turnId"])
    events = await rig.client.get(f"/turns/{turn['turnId']}/events")

    lines = [line for line in capsys.readouterr().err.splitlines() if ref in line]
    assert events_in(events.text)[-1]["data"]["errorRef"] == ref
    assert [name for line in lines for name in re.findall(r'"event": ?"(\w+)"', line)] == [
        "model_refused_request",
        "turn_failed",
    ]
    for said in ("openai", "refusing", "400"):
        assert said in lines[0]
    assert SECRET_WORDS not in "".join(lines)


async def test_a_failure_is_the_same_however_often_it_is_read(rig: Rig) -> None:
    turn = await rig.waiting()
    path = f"/turns/{turn['turnId']}"

    first, second = [(await rig.client.get(path)).json() for _ in range(2)]
    [listed] = (await rig.client.get(f"{path}/failures")).json()["items"]
    conversation = (await rig.client.get(f"/conversations/{turn['conversationId']}")).json()

    assert first == second
    assert first["suspension"]["modelFailure"] == listed
    ids = {
        first["failureId"],
        conversation["activeTurn"]["failureId"],
        retry_of(first)["failureId"],
    }
    assert ids == {listed["failureId"]}


async def test_nothing_of_the_failure_is_left_once_the_turn_goes_on(rig: Rig) -> None:
    waiting = await rig.waiting()

    resumed = await rig.service.resume(
        waiting["turnId"], {"failureId": waiting["failureId"]}, wait=0
    )
    ended = await rig.service.at_rest(waiting["turnId"])

    for turn in (resumed.json(), ended):
        assert turn["status"] != "WAITING_FOR_MODEL"
        for field in ("failureId", "failureType", "retryAfterMillis", "retryAt", "message"):
            assert turn[field] is None
        assert turn["suspension"] is None
        assert turn["waits"] == []


async def test_a_resume_of_a_turn_that_runs_already_is_no_success(rig: Rig) -> None:
    turn = await rig.at_work()

    answer = await rig.service.resume(turn["turnId"], {"failureId": "fail_before"}, wait=0)

    body = assert_problem(answer, 409, "turn_not_blocked")
    assert body["currentStatus"] == "RUNNING"


async def test_a_failed_turn_is_no_completed_one(rig: Rig) -> None:
    turn = await rig.failed()
    events = events_in((await rig.client.get(f"/turns/{turn['turnId']}/events")).text)

    assert (turn["status"], turn["stopReason"], turn["finalOutput"]) == ("FAILED", None, None)
    assert turn["message"]
    assert [e["type"] for e in events if e["type"].startswith("TURN_")][-1] == "TURN_FAILED"
    assert "TURN_COMPLETED" not in {e["type"] for e in events}


@pytest.mark.parametrize("kind", ["quota", "overloaded", "unavailable", "context", "auth"])
async def test_a_time_that_nobody_stated_is_nowhere(rig: Rig, kind: str) -> None:
    turn = await rig.service.send(fresh_id(), outage(kind), agentId="clerk")

    assert (turn["retryAt"], turn["retryAfterMillis"]) == (None, None)
    assert "UTC" not in turn["message"] + retry_of(turn).get("message", "")
    assert "helpsFrom" not in retry_of(turn)


async def test_a_retry_that_is_scheduled_claims_no_time_of_the_providers(rig: Rig) -> None:
    turn = await rig.scheduled()

    assert turn["retryAt"] is not None
    assert turn["retryAfterMillis"] is None
    assert "UTC" not in turn["message"]


@pytest.mark.parametrize(
    ("kind", "reason", "helps"),
    [
        ("context", "unlikely_to_help", ["shorter_history", "other_model"]),
        ("output", "unlikely_to_help", ["shorter_answer", "higher_output_limit"]),
        ("quota", "after_top_up", ["top_up", "other_model"]),
        ("auth", "needs_operator", ["configuration", "other_model"]),
        ("overloaded", None, None),
        ("unavailable", None, None),
    ],
)
async def test_case_32_a_retry_says_whether_it_helps_and_what_would(
    rig: Rig, kind: str, reason: str | None, helps: list[str] | None
) -> None:
    turn = await rig.service.send(fresh_id(), outage(kind), agentId="clerk")
    headers = {"Accept-Language": "zh"}
    chinese = await rig.client.get(f"/turns/{turn['turnId']}", headers=headers)

    retry, in_chinese = retry_of(turn), retry_of(chinese.json())

    assert retry["enabled"]
    assert (retry.get("reason"), retry.get("helps")) == (reason, helps)
    assert ("message" in retry) == (reason is not None)
    if reason is not None:
        assert retry["message"].endswith(".")
        assert in_chinese["message"].endswith("。")
        assert in_chinese["message"] != retry["message"]


async def test_a_rate_limit_says_from_when_a_retry_helps(rig: Rig) -> None:
    turn = await rig.service.send(fresh_id(), outage("rate"), agentId="clerk")

    retry = retry_of(turn)

    assert (retry["enabled"], retry["reason"]) == (True, "not_before")
    assert retry["helpsFrom"] == turn["retryAt"]
    assert f"{turn['retryAt'][:10]} {turn['retryAt'][11:16]} UTC" in retry["message"]


async def test_a_refusal_carries_the_same_list_in_the_same_language(rig: Rig) -> None:
    turn = await rig.service.send(fresh_id(), outage("context"), agentId="clerk")
    path, headers = f"/turns/{turn['turnId']}", {"Accept-Language": "zh"}

    refused = await rig.client.post(f"{path}/resume", json={"failureId": "x"}, headers=headers)
    read = await rig.client.get(path, headers=headers)

    body = assert_problem(refused, 409, "correlation_mismatch")
    assert body["allowedActions"] == read.json()["actions"]


async def test_limits_are_offered_for_change_to_operators_alone(rig: Rig) -> None:
    for role, changes in ((Role.OPERATOR, ["limits"]), (Role.USER, None)):
        async with rig.signed_in_as(role, actor=fresh_id()) as client:
            sent = await client.post(
                f"/conversations/{fresh_id()}/messages",
                json={"content": "hello", "agentId": "mute"},
            )
            path = f"/turns/{sent.json()['turnId']}"
            paused = await client.post(f"{path}/pause")
            await client.post(f"{path}/cancel")

        [resume] = [a for a in paused.json()["actions"] if a["command"] == "RESUME"]
        assert resume.get("changes") == changes
