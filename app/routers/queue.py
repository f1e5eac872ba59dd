"""`/conversations/{id}/queue`: messages that wait while the conversation's turn is at work."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from app.http.etags import TURN_HEADERS
from app.http.openapi import may_answer
from app.routers.answers import json_answer, turn_headers, turn_resource
from app.routers.deps import CallerDep, ConversationPath, LanguageDep, ServicesDep
from app.routers.turn_schemas import TurnOutput
from app.routers.wire import ID_PATTERN
from app.services.queue import withdraw
from app.turn.ids import ConversationId, MessageId

router = APIRouter(prefix="/conversations/{conversationId}/queue", tags=["messages"])

_ONE = "/{messageId}"
MessagePath = Annotated[str, Path(alias="messageId", pattern=ID_PATTERN)]


@router.delete(
    _ONE,
    response_model=TurnOutput,
    responses={200: {"headers": TURN_HEADERS}},
    openapi_extra=may_answer(
        "conversation_not_found", "queued_input_not_found", "version_conflict", "payload_invalid"
    ),
)
async def withdraw_a_message(
    conversation_id: ConversationPath,
    message_id: MessagePath,
    services: ServicesDep,
    caller: CallerDep,
    language: LanguageDep,
) -> Response:
    """Takes a message back that waits in the queue; answers with the turn that had it.

    A message that has been said is not in the queue any more. The id stays taken either way.
    """
    stored = await withdraw(
        services, caller, ConversationId(conversation_id), MessageId(message_id)
    )
    body = await turn_resource(services, caller, stored, language)
    return json_answer(body, 200, turn_headers(stored))
