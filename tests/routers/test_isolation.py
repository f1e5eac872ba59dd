"""What belongs to somebody else is not there: the same answer as for what never was."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from app.services.principal import Role
from tests.http.rig import Rig, fresh_id, unchanged

STRANGERS = [("somebody", "default"), ("default", "another-tenant")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A client to whom the operator's turns are none."""

    client: httpx.AsyncClient


@asynccontextmanager
async def stranger(rig: Rig, actor: str, tenant: str) -> AsyncGenerator[Stranger]:
    """Another user of the tenant, or another tenant's operator."""
    role = Role.USER if tenant == "default" else Role.OPERATOR
    async with rig.signed_in_as(role, actor=actor, tenant=tenant) as client:
        yield Stranger(client=client)


@pytest.mark.parametrize(("actor", "tenant"), STRANGERS)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/turns/{turn}", None),
        ("GET", "/turns/{turn}/events", None),
        ("GET", "/turns/{turn}/events?after=999", None),
        ("GET", "/turns/{turn}/failures", None),
        ("GET", "/turns/{turn}/interruptions", None),
        ("GET", "/turns/{turn}/approvals", None),
        ("GET", "/turns/{turn}/late-results", None),
        ("POST", "/turns/{turn}/resume", {"failureId": "x"}),
        ("POST", "/turns/{turn}/resume", {"command": "APPROVE_TOOL", "callId": "x"}),
        ("POST", "/turns/{turn}/resume", {"command": "TOOL_RESULT", "callId": "x", "output": 1}),
        ("POST", "/turns/{turn}/resume", {"command": "CONTINUE"}),
        ("POST", "/turns/{turn}/cancel", None),
        ("POST", "/turns/{turn}/run", None),
        ("POST", "/turns/{turn}/fork", None),
        ("GET", "/conversations/{conversation}", None),
        ("GET", "/conversations/{conversation}/resume-point", None),
        ("POST", "/conversations/{conversation}/resume", None),
        ("POST", "/conversations/{conversation}/resume", {"failureId": "x"}),
        ("POST", "/conversations/{conversation}/revert", {"messageId": "x"}),
        ("POST", "/conversations/{conversation}/unrevert", None),
        ("DELETE", "/conversations/{conversation}", None),
        ("GET", "/conversations/{conversation}/messages", None),
        ("GET", "/turns?conversationId={conversation}", None),
    ],
)
async def test_case_145_it_is_answered_like_what_is_missing(
    rig: Rig,
    still: dict[str, Any],
    actor: str,
    tenant: str,
    method: str,
    path: str,
    body: object,
) -> None:
    def address(turn: str, conversation: str) -> str:
        return path.format(turn=turn, conversation=conversation)

    missing = ("turn_" + fresh_id(), fresh_id())
    theirs = (still["turnId"], still["conversationId"])
    async with stranger(rig, actor, tenant) as other:
        found = await other.client.request(method, address(*theirs), json=body)
        nothing = await other.client.request(method, address(*missing), json=body)

    def told(answer: httpx.Response, ids: tuple[str, str]) -> str:
        return answer.text.replace(ids[0], "ID").replace(ids[1], "ID")

    assert found.status_code == nothing.status_code
    assert told(found, theirs) == told(nothing, missing)
    assert set(found.headers) == set(nothing.headers)
    assert await unchanged(rig, still)


@pytest.mark.parametrize(("actor", "tenant"), STRANGERS)
async def test_it_is_in_no_list(rig: Rig, still: dict[str, Any], actor: str, tenant: str) -> None:
    async with stranger(rig, actor, tenant) as other:
        turns = await other.client.get("/turns?limit=200")
        conversations = await other.client.get("/conversations?limit=200")
        waits = await other.client.get("/waits?limit=200")

    assert still["turnId"] not in turns.text
    assert still["turnId"] not in waits.text
    assert still["conversationId"] not in conversations.text


async def test_another_tenant_may_use_the_same_conversation_id(
    rig: Rig, still: dict[str, Any]
) -> None:
    async with rig.signed_in_as(Role.OPERATOR, tenant="another-tenant") as other:
        made = await other.put(f"/conversations/{still['conversationId']}")
        found = await other.get(f"/conversations/{still['conversationId']}")

    assert made.status_code == 201
    assert found.json()["activeTurn"] is None
    assert await unchanged(rig, still)


async def test_another_user_cannot_write_into_a_conversation(
    rig: Rig, still: dict[str, Any]
) -> None:
    path = f"/conversations/{still['conversationId']}"
    async with rig.signed_in_as(Role.USER) as user:
        answers = [
            await user.post(f"{path}/messages", json={"content": "hi"}),
            await user.post(
                f"{path}/messages", json={"content": "hi", "messageId": "m", "agentId": "clerk"}
            ),
            await user.post(f"{path}/turns", json={"content": "hi"}),
            await user.put(path),
        ]
        foreseen = await user.post(f"{path}/messages?dryRun=true", json={"content": "hi"})

    assert [answer.json()["code"] for answer in answers] == ["conversation_not_found"] * 4
    assert foreseen.json()["turnId"] is None
    assert foreseen.json()["problem"] == answers[0].json()
    assert await unchanged(rig, still)


async def test_an_operator_sees_the_conversations_of_its_tenant(rig: Rig) -> None:
    async with rig.signed_in_as(Role.USER, actor=fresh_id()) as user:
        made = await user.post("/conversations", json={"title": "mine"})

    found = await rig.client.get(made.headers["Location"])

    assert found.json() == made.json()
