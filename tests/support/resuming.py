"""What tests ask of conversations without a new message, and what was asked of the model then."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from tests.support.provider import RunningProvider
from tests.support.service import SignedIn
from tests.support.story import MODEL


async def brought(service: SignedIn, history: Sequence[Mapping[str, Any]], **more: object) -> str:
    """The id of a new conversation with that history."""
    body = {"history": history, "agentId": "clerk", **more}
    answer = await service.client.post("/conversations", json=body)
    assert answer.status_code == 201, answer.text
    conversation_id: str = answer.json()["conversationId"]
    return conversation_id


async def point_of(service: SignedIn, conversation: str, language: str = "en") -> dict[str, Any]:
    """The conversation's resume point."""
    path = f"/conversations/{conversation}/resume-point"
    answer = await service.client.get(path, headers={"Accept-Language": language})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def resume(
    service: SignedIn, conversation: str, body: object = None, **headers: str
) -> httpx.Response:
    """Resume the conversation, and wait for what goes on to rest."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    path = f"/conversations/{conversation}/resume"
    return await service.client.post(path, json=body, headers={"Prefer": "wait=20", **named})


async def transcript_of(service: SignedIn, conversation: str) -> list[tuple[str, Any]]:
    """Roles and contents of what the conversation shows."""
    answer = await service.client.get(f"/conversations/{conversation}/messages?limit=200")
    assert answer.status_code == 200, answer.text
    return [(message["role"], message["content"]) for message in answer.json()["items"]]


def last_request(provider: RunningProvider) -> list[dict[str, Any]]:
    """The messages of the last request to the story's model, without our own instructions."""
    body: Any = provider.requests(MODEL)[-1]["body"]
    return [message for message in body["messages"] if message["role"] != "system"]
