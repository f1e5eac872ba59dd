"""`/conversations`."""

from typing import Any

from fastapi import APIRouter, Response

from app.http.openapi import may_answer
from app.routers.cursors import decode_cursor, encode_cursor
from app.routers.deps import CallerDep, ConversationPath, CursorText, Limit, ServicesDep
from app.routers.message_schemas import (
    ConversationBody,
    ConversationOutput,
    ConversationPage,
    conversation_output,
)
from app.services.conversations import (
    get_conversation,
    list_conversations,
    put_conversation,
)
from app.turn.ids import AgentId, ConversationId

router = APIRouter(prefix="/conversations", tags=["conversations"])

_ONE = "/{conversationId}"
_NOTHING_SAID = ConversationBody()
_MADE_OR_THERE: dict[int | str, dict[str, Any]] = {
    201: {"model": ConversationOutput, "description": "Made now."}
}


@router.post("", status_code=201)
async def make_a_conversation(
    services: ServicesDep,
    caller: CallerDep,
    response: Response,
    body: ConversationBody = _NOTHING_SAID,
) -> ConversationOutput:
    """A new conversation under an id of the server's."""
    conversation_id = services.new_id("ses")
    return await _put(services, caller, response, conversation_id, body)


@router.put(_ONE, responses=_MADE_OR_THERE, openapi_extra=may_answer("conversation_not_found"))
async def put_a_conversation(
    conversation_id: ConversationPath,
    services: ServicesDep,
    caller: CallerDep,
    response: Response,
    body: ConversationBody = _NOTHING_SAID,
) -> ConversationOutput:
    """The conversation of that id: made (201) or there already (200)."""
    return await _put(services, caller, response, conversation_id, body)


@router.get(_ONE, openapi_extra=may_answer("conversation_not_found", "payload_invalid"))
async def read_a_conversation(
    conversation_id: ConversationPath, services: ServicesDep, caller: CallerDep
) -> ConversationOutput:
    found = await get_conversation(services, caller, ConversationId(conversation_id))
    return conversation_output(found)


@router.get("", openapi_extra=may_answer("cursor_invalid", "payload_invalid"))
async def read_conversations(
    services: ServicesDep, caller: CallerDep, limit: Limit = 50, cursor: CursorText = None
) -> ConversationPage:
    """Latest activity first."""
    place = decode_cursor(cursor)
    before = None if place is None else (place[0], ConversationId(place[1]))
    found = await list_conversations(services, caller, before=before, limit=limit)
    last = found[-1].conversation if len(found) == limit else None
    return ConversationPage(
        items=[conversation_output(summary) for summary in found],
        next_cursor=last and encode_cursor(last.updated_at, last.conversation_id),
    )


async def _put(
    services: ServicesDep,
    caller: CallerDep,
    response: Response,
    conversation_id: str,
    body: ConversationBody,
) -> ConversationOutput:
    found, made = await put_conversation(
        services,
        caller,
        ConversationId(conversation_id),
        agent_id=None if body.agent_id is None else AgentId(body.agent_id),
        title=body.title,
    )
    response.status_code = 201 if made else 200
    response.headers["Location"] = f"/conversations/{conversation_id}"
    return conversation_output(found)
