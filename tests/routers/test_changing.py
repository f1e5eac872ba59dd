"""`changes` of RETRY_MODEL over HTTP: who may make them, where they help, what is recorded."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.agents import Agent, Changeable
from app.services.principal import Role
from tests.http.rig import Rig, assert_problem, fresh_id, running_rig, unchanged

CLERK = Agent(id="clerk", instructions="", model="full")
CAREFUL = replace(
    CLERK,
    id="careful",
    changes=Changeable(
        model="operator",
        max_output_tokens="nobody",
        limits="nobody",
        models=("full", "roomy"),
    ),
)
RIGID = replace(
    CLERK,
    id="rigid",
    changes=Changeable(
        model="nobody",
        max_output_tokens="nobody",
        compact="nobody",
        keep_turns="nobody",
        limits="nobody",
    ),
)
TOO_LONG = {
    "times": 99,
    "status": 400,
    "body": {"error": {"message": "too long", "code": "context_length_exceeded"}},
}


@pytest.fixture
async def rig(database_dsn: str, tmp_path: Path) -> AsyncGenerator[Rig]:
    """A service whose model finds every request too long; another one does not."""
    async with running_rig(database_dsn, tmp_path, agents=(CLERK, CAREFUL, RIGID)) as running:
        running.provider.script("full", [{"text": "", "faults": [TOO_LONG]}])
        running.provider.script("roomy", [{"text": "It fits."}])
        yield running


async def waiting(rig: Rig, agent: str = "clerk") -> dict[str, Any]:
    return await rig.service.send(fresh_id(), "Go.", agentId=agent)


def retry(turn: dict[str, Any], **changes: object) -> dict[str, object]:
    command = {"command": "RETRY_MODEL", "failureId": turn["failureId"]}
    return {**command, "changes": changes}


async def test_a_change_is_made_and_told_in_the_events_and_the_audit(rig: Rig) -> None:
    turn = await waiting(rig)
    limits = {"maxIterations": 7, "maxDurationSeconds": 90}

    done = await rig.post(
        f"/turns/{turn['turnId']}/resume",
        retry(turn, model="roomy", keepTurns=0, limits=limits),
        Prefer="wait=20",
        X_Request_Id="req-of-the-changes",
    )
    events = await rig.client.get(f"/turns/{turn['turnId']}/events")

    assert (done.status_code, done.json()["finalOutput"]) == (202, "It fits.")
    resumed = [line for line in events.text.splitlines() if '"commandType":"RETRY_MODEL"' in line]
    told = json.loads(resumed[0].removeprefix("data: "))["data"]["changes"]
    assert told == {
        "model": "roomy",
        "keepTurns": 0,
        "limits": {"maxIterations": 7, "maxSteps": 1_000, "maxDurationSeconds": 90.0},
    }
    [row] = await rig.rows(
        "SELECT action, failure_id, changes FROM audit WHERE turn_id = $1 AND action = $2",
        turn["turnId"],
        "RETRY_MODEL",
    )
    assert row["failure_id"] == turn["failureId"]
    assert json.loads(row["changes"]) == told


async def test_a_command_without_changes_records_none(rig: Rig) -> None:
    turn = await waiting(rig)

    await rig.post(f"/turns/{turn['turnId']}/resume", {"failureId": turn["failureId"]})

    found = await rig.rows("SELECT changes FROM audit WHERE turn_id = $1", turn["turnId"])
    assert {row["changes"] for row in found} == {None}


async def test_case_32_a_plain_retry_of_a_token_limit_is_taken_and_fails_anew(rig: Rig) -> None:
    turn = await waiting(rig)

    again = await rig.service.resume(turn["turnId"], {"failureId": turn["failureId"]})

    found = again.json()
    assert (again.status_code, found["status"]) == (202, "WAITING_FOR_MODEL")
    assert found["failureId"] != turn["failureId"]
    assert found["failureType"] == "TOKEN_LIMIT_EXCEEDED"
    assert len(rig.provider.requests("full")) == 2


async def test_how_long_an_answer_may_be_is_sent_to_the_provider(rig: Rig) -> None:
    cut = {"times": 1, "status": 400, "body": {"error": {"message": "max_tokens is too large"}}}
    rig.provider.script("full", [{"text": "Short.", "faults": [cut]}])
    turn = await waiting(rig)

    done = await rig.service.resume(turn["turnId"], retry(turn, maxOutputTokens=99))

    assert done.json()["finalOutput"] == "Short.", done.text
    sent: Any = rig.provider.requests("full")[-1]["body"]
    assert sent["max_tokens"] == 99


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"compact": "yes"},
        {"keepTurns": -1},
        {"keepTurns": 1.5},
        {"maxOutputTokens": 0},
        {"maxOutputTokens": "9"},
        {"model": ""},
        {"model": " "},
        {"model": None},
        {"compact": False},
        {"limits": {}},
        {"limits": {"maxSteps": None}},
        {"limits": {"maxSteps": 0}},
        {"limits": {"maxSteps": True}},
        {"limits": {"maxToolCalls": "7"}},
        {"limits": {"maxDurationSeconds": True}},
        {"temperature": 2},
        {"maxOutputTokens": 99},  # the prompt is what is too long
    ],
    ids=str,
)
async def test_changes_that_make_no_sense_are_refused_and_nothing_happens(
    rig: Rig, changes: dict[str, object]
) -> None:
    turn = await waiting(rig)

    answer = await rig.post(f"/turns/{turn['turnId']}/resume", retry(turn, **changes))

    assert_problem(answer, 422, "payload_invalid")
    assert await unchanged(rig, await rig.service.turn(turn["turnId"]))
    assert len(rig.provider.requests("full")) == 1


async def test_what_the_agents_version_keeps_from_users_or_from_all_is_forbidden(rig: Rig) -> None:
    async with rig.signed_in_as(Role.USER) as user:
        answer = await user.post(
            f"/conversations/{fresh_id()}/messages",
            json={"content": "Go.", "agentId": "careful"},
            headers={"Prefer": "wait=20"},
        )
        turn = answer.json()
        address = f"/turns/{turn['turnId']}/resume"
        by_user = [
            await user.post(address, json=retry(turn, **changes))
            for changes in ({"model": "roomy"}, {"limits": {"maxSteps": 9}})
        ]
        resumed = await user.post(
            f"/conversations/{turn['conversationId']}/resume",
            json={"failureId": turn["failureId"], "model": "roomy"},
        )
    by_operator = [
        await rig.post(address, retry(turn, **changes))
        for changes in ({"maxOutputTokens": 9}, {"limits": {"maxSteps": 9}})
    ]
    unknown = await rig.post(address, retry(turn, model="another"))
    done = await rig.service.resume(turn["turnId"], retry(turn, model="roomy"))

    for refused in (*by_user, resumed, *by_operator):
        assert_problem(refused, 403, "forbidden")
    assert_problem(unknown, 422, "payload_invalid")
    assert done.json()["finalOutput"] == "It fits."


async def test_a_user_changes_no_limits(rig: Rig) -> None:
    async with rig.signed_in_as(Role.USER) as user:
        answer = await user.post(
            f"/conversations/{fresh_id()}/messages",
            json={"content": "Go.", "agentId": "clerk"},
            headers={"Prefer": "wait=20"},
        )
        turn = answer.json()
        address = f"/turns/{turn['turnId']}/resume"
        refused = await user.post(address, json=retry(turn, limits={"maxSteps": 9}))
        taken = await user.post(address, json=retry(turn, model="roomy"))

    assert_problem(refused, 403, "forbidden")
    assert taken.status_code == 202


def offered_retry(turn: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = [a for a in turn["actions"] if a["command"] == "RETRY_MODEL"]
    [retry] = found
    return retry


async def test_a_turn_that_waits_says_which_changes_and_models_its_reader_may_name(
    rig: Rig,
) -> None:
    conversation = fresh_id()
    async with rig.signed_in_as(Role.USER, actor="ada") as user:
        body = {"content": "Go.", "agentId": "careful"}
        sent = await user.post(
            f"/conversations/{conversation}/messages", json=body, headers={"Prefer": "wait=20"}
        )
        path = f"/turns/{sent.json()['turnId']}"
        by_user = offered_retry((await user.get(path)).json())
        by_operator = offered_retry((await rig.client.get(path)).json())

    assert by_user["changes"] == ["compact", "keepTurns"]
    assert "models" not in by_user
    assert by_user["helps"] == ["shorter_history"]
    assert by_user["message"] == ("A plain retry is unlikely to help. A shorter history would.")
    assert by_operator["changes"] == ["model", "compact", "keepTurns"]
    assert by_operator["models"] == ["roomy"]
    assert by_operator["helps"] == ["shorter_history", "other_model"]


async def test_case_32_where_nobody_may_change_a_thing_no_help_is_promised(rig: Rig) -> None:
    retry = offered_retry(await waiting(rig, "rigid"))

    assert (retry["enabled"], retry["reason"]) == (True, "unlikely_to_help")
    assert retry["message"] == "A plain retry is unlikely to help."
    assert not retry.keys() & {"helps", "changes", "models"}


async def test_a_viewer_is_offered_no_change(rig: Rig) -> None:
    async with rig.signed_in_as(Role.VIEWER, actor="ada") as viewer:
        async with rig.signed_in_as(Role.USER, actor="ada") as user:
            sent = await user.post(
                f"/conversations/{fresh_id()}/messages",
                json={"content": "Go.", "agentId": "clerk"},
                headers={"Prefer": "wait=20"},
            )
        seen = await viewer.get(f"/turns/{sent.json()['turnId']}")

    assert "changes" not in offered_retry(seen.json())
