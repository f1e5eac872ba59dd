"""Every command leaves one row, accepted or refused; an accepted one's in its own commit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from starlette.types import Message, Scope

from app.http.audit import CommandAudit
from app.services.principal import Role
from tests.http.rig import (
    Rig,
    assert_problem,
    fresh_id,
    logging_as_served,
    rows,
    running_rig,
    unchanged,
)
from tests.http.test_sign_in import browser
from tests.support.service import TOKEN

PRIVATE = "what-a-user-said-in-confidence"


async def audited(rig: Rig, request_id: str) -> Sequence[dict[str, Any]]:
    """The rows of one request."""
    return await rig.rows(
        "SELECT tenant_id, actor_id, action, outcome, code, conversation_id, turn_id, failure_id "
        "FROM audit WHERE request_id = $1",
        request_id,
    )


def row(action: str, **more: object) -> dict[str, object]:
    """A row of the operator's."""
    nothing = dict.fromkeys(("code", "conversation_id", "turn_id", "failure_id"))
    who = {"tenant_id": "default", "actor_id": "default", "outcome": "accepted"}
    return {"action": action} | nothing | who | more


async def test_every_accepted_command_leaves_one_row(rig: Rig) -> None:
    waiting = await rig.waiting()
    turn, conversation = waiting["turnId"], waiting["conversationId"]
    r = [fresh_id() for _ in range(5)]

    await rig.client.put(f"/conversations/{conversation}", headers={"X-Request-Id": r[0]})
    await rig.post(f"/conversations/{conversation}/messages", {"content": "x"}, X_Request_Id=r[1])
    other = await rig.scheduled()
    await rig.post(f"/turns/{other['turnId']}/resume", {"command": "CONTINUE"}, X_Request_Id=r[2])
    third = await rig.waiting()
    retry = {"failureId": third["failureId"]}
    await rig.post(f"/turns/{third['turnId']}/resume", retry, X_Request_Id=r[3])
    fourth = await rig.waiting()
    await rig.post(f"/turns/{fourth['turnId']}/cancel", X_Request_Id=r[4])

    assert await audited(rig, r[0]) == [row("PUT_CONVERSATION", conversation_id=conversation)]
    assert await audited(rig, r[1]) == [row("MESSAGE", conversation_id=conversation, turn_id=turn)]
    assert await audited(rig, r[2]) == [
        row("CONTINUE", conversation_id=other["conversationId"], turn_id=other["turnId"])
    ]
    assert await audited(rig, r[3]) == [
        row(
            "RETRY_MODEL",
            conversation_id=third["conversationId"],
            turn_id=third["turnId"],
            failure_id=third["failureId"],
        )
    ]
    assert await audited(rig, r[4]) == [
        row("CANCEL", conversation_id=fourth["conversationId"], turn_id=fourth["turnId"])
    ]


async def test_starts_and_runs_are_commands_of_their_own(rig: Rig) -> None:
    conversation, r = fresh_id(), [fresh_id() for _ in range(4)]
    path = f"/conversations/{conversation}/turns"
    said = {"content": "hello", "messageId": "m1", "agentId": "clerk", "hold": True}

    first = await rig.post(path, said, X_Request_Id=r[0])
    await rig.post(path, said, X_Request_Id=r[1])
    turn = first.json()["turnId"]
    await rig.post(f"/turns/{turn}/run", X_Request_Id=r[2])
    alone = await rig.post("/turns", {"content": "hello", "agentId": "clerk"}, X_Request_Id=r[3])

    start = row("START_TURN", conversation_id=conversation, turn_id=turn)
    assert await audited(rig, r[0]) == await audited(rig, r[1]) == [start]
    assert await audited(rig, r[2]) == [row("RUN", conversation_id=conversation, turn_id=turn)]
    assert await audited(rig, r[3]) == [
        row(
            "START_TURN",
            conversation_id=alone.json()["conversationId"],
            turn_id=alone.json()["turnId"],
        )
    ]


async def test_a_dry_run_leaves_no_row_whatever_it_says(rig: Rig, still: dict[str, Any]) -> None:
    request, conversation = fresh_id(), still["conversationId"]

    for path in (f"/conversations/{conversation}/messages", f"/conversations/{conversation}/turns"):
        for agent in ("clerk", "patient"):
            said = {"content": "x", "agentId": agent}
            answer = await rig.post(f"{path}?dryRun=true", said, X_Request_Id=request)
            assert answer.status_code == 200

    assert await audited(rig, request) == []
    assert await unchanged(rig, still)


async def test_an_accepted_command_says_what_it_changed(rig: Rig) -> None:
    waiting = await rig.waiting()
    request = fresh_id()

    done = await rig.post(f"/turns/{waiting['turnId']}/cancel", X_Request_Id=request)

    [found] = await rig.rows(
        "SELECT version_before, version_after, status_before, status_after FROM audit "
        "WHERE request_id = $1",
        request,
    )
    assert found == {
        "version_before": waiting["version"],
        "version_after": done.json()["version"],
        "status_before": "WAITING_FOR_MODEL",
        "status_after": "CANCELLED",
    }


async def test_a_repeated_command_leaves_a_row_each_time(rig: Rig) -> None:
    conversation, r = fresh_id(), [fresh_id() for _ in range(4)]
    said = {"content": "hello", "messageId": "m1", "agentId": "mute"}
    path = f"/conversations/{conversation}/messages"

    first = await rig.post(path, said, X_Request_Id=r[0])
    await rig.post(path, said, X_Request_Id=r[1])
    turn = first.json()["turnId"]
    await rig.post(f"/turns/{turn}/cancel", X_Request_Id=r[2])
    await rig.client.get(f"/turns/{turn}/events")  # until it has ended
    await rig.post(f"/turns/{turn}/cancel", X_Request_Id=r[3])

    message = row("MESSAGE", conversation_id=conversation, turn_id=turn)
    cancel = row("CANCEL", conversation_id=conversation, turn_id=turn)
    assert [await audited(rig, each) for each in r] == [[message], [message], [cancel], [cancel]]


async def test_a_repeated_replan_leaves_a_row_of_its_own_name(rig: Rig) -> None:
    waiting, request = await rig.waiting(), fresh_id()
    message = {"messageId": "m2", "content": "Instead."}
    path = f"/turns/{waiting['turnId']}/resume"
    await rig.post(path, {"command": "REPLAN_WITH_MESSAGE", "message": message}, Prefer="wait=20")

    again = await rig.post(
        path, {"command": "REPLAN_WITH_MESSAGE", "message": message}, X_Request_Id=request
    )

    assert again.headers["Idempotency-Replayed"] == "true"
    on_turn = {"conversation_id": waiting["conversationId"], "turn_id": waiting["turnId"]}
    assert await audited(rig, request) == [row("REPLAN_WITH_MESSAGE", **on_turn)]


async def test_every_refused_command_leaves_one_row_with_its_code(
    rig: Rig, still: dict[str, Any]
) -> None:
    turn, conversation = still["turnId"], still["conversationId"]
    resume, messages = f"/turns/{turn}/resume", f"/conversations/{conversation}/messages"
    on_turn = {"turn_id": turn, "outcome": "refused"}
    on_conversation = {"conversation_id": conversation, "outcome": "refused"}
    cases: list[tuple[str, object, dict[str, str], dict[str, object]]] = [
        (
            resume,
            {"failureId": "stale"},
            {},
            row("RETRY_MODEL", code="correlation_mismatch", failure_id="stale", **on_turn),
        ),
        (resume, {"command": "RETRY"}, {}, row("RETRY", code="wrong_command", **on_turn)),
        (resume, {"command": "FLY"}, {}, row("FLY", code="payload_invalid", **on_turn)),
        (resume, {}, {}, row("RESUME", code="payload_invalid", **on_turn)),
        (
            resume,
            {"command": "RETRY_MODEL"},
            {},
            row("RETRY_MODEL", code="payload_invalid", **on_turn),
        ),
        (
            resume,
            {"failureId": still["failureId"]},
            {"If-Match": '"1"'},
            row(
                "RETRY_MODEL",
                code="precondition_failed",
                failure_id=still["failureId"],
                **on_turn,
            ),
        ),
        (
            resume,
            {"failureId": still["failureId"]},
            {"Idempotency-Key": "two words"},
            row("RETRY_MODEL", code="bad_request", failure_id=still["failureId"], **on_turn),
        ),
        (messages, {}, {}, row("MESSAGE", code="messages_required", **on_conversation)),
        (
            messages,
            {"content": "x", "agentId": "patient"},
            {},
            row("MESSAGE", code="conversation_busy", **on_conversation),
        ),
        (
            "/conversations",
            {"agentId": "nobody"},
            {},
            row("PUT_CONVERSATION", code="payload_invalid", outcome="refused"),
        ),
        (
            "/turns/nobody/cancel",
            None,
            {},
            row("CANCEL", code="turn_not_found", turn_id="nobody", outcome="refused"),
        ),
        (
            f"/conversations/{conversation}/turns",
            {"content": "x"},
            {},
            row("START_TURN", code="conversation_busy", **on_conversation),
        ),
        (
            "/turns",
            {"content": "x", "agentId": "nobody"},
            {},
            row("START_TURN", code="payload_invalid", outcome="refused"),
        ),
        (f"/turns/{turn}/run", None, {}, row("RUN", code="wrong_command", **on_turn)),
        (f"/turns/{turn}", None, {}, row("POST", code="method_not_allowed", **on_turn)),
        ("/nowhere", None, {}, row("POST", code="not_found", outcome="refused")),
    ]

    for path, body, headers, expected in cases:
        request = fresh_id()
        answer = await rig.client.post(path, json=body, headers=headers | {"X-Request-Id": request})

        assert answer.json()["code"] == expected["code"]
        assert await audited(rig, request) == [expected]
    assert await unchanged(rig, still)


async def test_reads_leave_no_row(rig: Rig, still: dict[str, Any]) -> None:
    request = fresh_id()

    for path in (f"/turns/{still['turnId']}", "/turns/nobody", "/conversations", "/nowhere"):
        await rig.client.get(path, headers={"X-Request-Id": request})

    assert await audited(rig, request) == []


async def test_a_command_of_nobody_is_refused_and_written_down(
    rig: Rig, still: dict[str, Any]
) -> None:
    request = fresh_id()
    async with browser(rig) as client:
        answer = await client.post(
            f"/turns/{still['turnId']}/resume",
            json={"failureId": still["failureId"]},
            headers={"X-Request-Id": request},
        )

    assert_problem(answer, 401, "unauthenticated")
    [found] = await audited(rig, request)
    assert (found["tenant_id"], found["actor_id"]) == ("anonymous", "anonymous")
    assert (found["outcome"], found["code"]) == ("refused", "unauthenticated")
    assert (found["turn_id"], found["failure_id"]) == (still["turnId"], still["failureId"])
    assert await unchanged(rig, still)


@pytest.mark.parametrize(("tenant", "actor"), [("", "somebody"), ("default", "")])
async def test_a_principal_without_tenant_or_actor_commands_nothing(
    rig: Rig, tenant: str, actor: str
) -> None:
    async with rig.signed_in_as(Role.OPERATOR, tenant=tenant, actor=actor) as client:
        answer = await client.post("/conversations")

    assert_problem(answer, 401, "unauthenticated")


async def test_a_row_names_the_stranger_who_asked_and_what_was_asked_for(
    rig: Rig, still: dict[str, Any]
) -> None:
    request = fresh_id()
    async with rig.signed_in_as(Role.OPERATOR, tenant="another", actor="eve") as client:
        await client.post(f"/turns/{still['turnId']}/cancel", headers={"X-Request-Id": request})

    assert await audited(rig, request) == [
        row(
            "CANCEL",
            tenant_id="another",
            actor_id="eve",
            outcome="refused",
            code="turn_not_found",
            turn_id=still["turnId"],
        )
    ]


@pytest.mark.parametrize(
    "odd",
    ["a\0b", "x" * 5_000, "𝄞", "\x1b[2J", "' OR 1=1 --"],
    ids=["nul", "long", "astral", "escape", "sql"],
)
async def test_whatever_a_caller_names_can_be_written_down(
    rig: Rig, still: dict[str, Any], odd: str
) -> None:
    request = fresh_id()
    answer = await rig.post(
        f"/turns/{still['turnId']}/resume", {"failureId": odd}, X_Request_Id=request
    )

    assert_problem(answer, 409, "correlation_mismatch")
    [found] = await audited(rig, request)
    assert found["failure_id"] == odd.replace("\0", "\ufffd")[:128]


@pytest.mark.parametrize("form", ["console", "json"])
async def test_a_command_whose_row_cannot_be_written_has_no_effect(
    database_dsn: str,
    tmp_path: Path,
    form: Literal["console", "json"],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_as_served(form):
        await _refused_for_its_row(database_dsn, tmp_path)

    logged = capsys.readouterr().err
    assert "request_failed" in logged
    assert TOKEN not in logged
    assert PRIVATE not in logged


async def _refused_for_its_row(dsn: str, data_dir: Path) -> None:
    async with running_rig(dsn, data_dir, with_worker=False) as rig:
        kept = await rig.post("/conversations/kept/messages", {"content": "x", "agentId": "clerk"})
        await rows(rig.dsn, "ALTER TABLE audit ADD CHECK (request_id <> 'poison')")
        conversation = fresh_id()
        refused: list[httpx.Response] = [
            await rig.post(
                f"/conversations/{conversation}/messages",
                {"content": PRIVATE},
                X_Request_Id="poison",
            ),
            await rig.client.put(
                f"/conversations/{conversation}", headers={"X-Request-Id": "poison"}
            ),
            await rig.post(f"/turns/{kept.json()['turnId']}/cancel", X_Request_Id="poison"),
        ]
        missing = await rig.client.get(f"/conversations/{conversation}")
        unharmed = await rig.service.turn(kept.json()["turnId"])

    for answer in refused:
        assert_problem(answer, 500, "internal_error")
    assert_problem(missing, 404, "conversation_not_found")
    assert (unharmed["status"], unharmed["version"]) == ("READY", kept.json()["version"])


async def test_half_a_command_is_none_even_if_it_could_be_read(rig: Rig) -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b'{"content": "half"}  ', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    async def unreachable(*_: object) -> None:
        pytest.fail("half a command came through")

    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/conversations/c/messages",
        "headers": [(b"content-type", b"application/json")],
        "state": {},
    }
    await CommandAudit(unreachable, rig.service.runtime.services.audit)(scope, receive, unreachable)

    assert messages == []


async def test_what_no_service_is_to_see_is_refused_before_one_could_look(rig: Rig) -> None:
    """For a turn that is not there, whatever a service would say would be another thing."""
    path = "/turns/nobody/resume"

    without_failure = await rig.post(path, {"command": "RETRY_MODEL"})
    async with browser(rig) as client:
        of_nobody = await client.post(path, json={"failureId": "x"})
    async with rig.signed_in_as(Role.VIEWER) as viewer:
        of_a_viewer = await viewer.post(path, json={"failureId": "x"})

    refused = assert_problem(without_failure, 422, "payload_invalid")
    assert refused["detail"] == "RETRY_MODEL needs the failureId it retries"
    assert_problem(of_nobody, 401, "unauthenticated")
    assert_problem(of_a_viewer, 403, "forbidden")
