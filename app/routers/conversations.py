"""`/conversations`."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from app.http.openapi import may_answer
from app.routers.conversation_answers import conversation_answer, keeping_conversation
from app.routers.cursors import decode_cursor, encode_cursor
from app.routers.deps import CallerDep, ConversationPath, CursorText, Limit, ServicesDep
from app.routers.exchange import KEYED, KeyDep
from app.routers.import_schemas import AnyNewConversation, NewConversationBody, import_in
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
from app.services.deletion import delete_conversation
from app.services.deps import Caller, Services
from app.services.imports import import_history
from app.turn.ids import AgentId, ConversationId

router = APIRouter(prefix="/conversations", tags=["conversations"])

_ONE = "/{conversationId}"
_NOTHING_SAID = ConversationBody()
_NOTHING_BROUGHT = NewConversationBody()
_MADE_OR_THERE: dict[int | str, dict[str, Any]] = {
    201: {"model": ConversationOutput, "description": "Made now."}
}


@router.post("", status_code=201, response_model=ConversationOutput, dependencies=[KEYED])
async def make_a_conversation(
    services: ServicesDep,
    caller: CallerDep,
    key: KeyDep,
    body: Annotated[AnyNewConversation, Body()] = _NOTHING_BROUGHT,
) -> Response:
    """A new conversation under an id of the server's, with a history if one is brought along.

    A history may come from anywhere and be in any order; what is damaged of it is kept and left
    out of model requests. No call of it is ever run. At most 10,000 messages and 4 MiB.
    """
    keeping = keeping_conversation(caller, key, 201)
    conversation_id = ConversationId(services.new_id("ses"))
    given = import_in(body)
    if given is None:
        return await _put(services, keeping, conversation_id, body)
    made = await import_history(services, keeping, conversation_id, given)
    return conversation_answer(made, 201)


@router.put(
    _ONE,
    response_model=ConversationOutput,
    responses=_MADE_OR_THERE,
    openapi_extra=may_answer("conversation_not_found"),
)
async def put_a_conversation(
    conversation_id: ConversationPath,
    services: ServicesDep,
    caller: CallerDep,
    body: ConversationBody = _NOTHING_SAID,
) -> Response:
    """The conversation of that id: made (201) or there already (200)."""
    return await _put(services, caller, conversation_id, body)


@router.get(_ONE, openapi_extra=may_answer("conversation_not_found", "payload_invalid"))
async def read_a_conversation(
    conversation_id: ConversationPath, services: ServicesDep, caller: CallerDep
) -> ConversationOutput:
    found = await get_conversation(services, caller, ConversationId(conversation_id))
    return conversation_output(found)


@router.delete(
    _ONE,
    status_code=204,
    openapi_extra=may_answer(
        "conversation_not_found", "conversation_busy", "version_conflict", "payload_invalid"
    ),
)
async def delete_a_conversation(
    conversation_id: ConversationPath, services: ServicesDep, caller: CallerDep
) -> None:
    """Deletes everything that is kept of the conversation; only the audit stays, which holds ids.

    A turn that waits, or has not begun, is cancelled first. One that is at work is in the way:
    cancel it, and delete the conversation when it has ended. There is no way back.
    """
    await delete_conversation(services, caller, ConversationId(conversation_id))


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
    services: Services, caller: Caller, conversation_id: str, body: ConversationBody
) -> Response:
    found, made = await put_conversation(
        services,
        caller,
        ConversationId(conversation_id),
        agent_id=None if body.agent_id is None else AgentId(body.agent_id),
        title=body.title,
    )
    return conversation_answer(found, 201 if made else 200)
