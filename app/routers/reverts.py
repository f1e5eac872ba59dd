"""`/conversations/{id}/revert` and `/unrevert`: hiding what came after a message."""

from fastapi import APIRouter, Response

from app.http.openapi import may_answer
from app.routers.conversation_answers import conversation_answer, keeping_conversation
from app.routers.deps import CallerDep, ConversationPath, ServicesDep
from app.routers.exchange import KEYED, KeyDep
from app.routers.message_schemas import ConversationOutput, Id
from app.routers.wire import Input
from app.services.reverts import revert, unrevert
from app.turn.ids import ConversationId, MessageId

router = APIRouter(prefix="/conversations/{conversationId}", tags=["conversations"])


class RevertBody(Input):
    """The message to go back to; it stays."""

    message_id: Id


@router.post(
    "/revert",
    response_model=ConversationOutput,
    dependencies=[KEYED],
    openapi_extra=may_answer(
        "conversation_not_found", "message_not_found", "conversation_busy", "version_conflict"
    ),
)
async def revert_a_conversation(
    conversation_id: ConversationPath,
    body: RevertBody,
    services: ServicesDep,
    caller: CallerDep,
    key: KeyDep,
) -> Response:
    """Hides everything that came after a user's message, from lists and from the model.

    The message itself stays: a resume answers it anew. `unrevert` brings the rest back, until a new
    message of a user makes the revert final. A resume goes on with what is visible and leaves the
    revert as it is. A conversation whose turn has not ended is not reverted.
    """
    keeping = keeping_conversation(caller, key, 200)
    message_id = MessageId(body.message_id)
    found = await revert(services, keeping, ConversationId(conversation_id), message_id)
    return conversation_answer(found, 200)


@router.post(
    "/unrevert",
    response_model=ConversationOutput,
    dependencies=[KEYED],
    openapi_extra=may_answer(
        "conversation_not_found", "conversation_busy", "version_conflict", "payload_invalid"
    ),
)
async def unrevert_a_conversation(
    conversation_id: ConversationPath, services: ServicesDep, caller: CallerDep, key: KeyDep
) -> Response:
    """Brings back what a revert hides, if no message has made it final; else changes nothing."""
    keeping = keeping_conversation(caller, key, 200)
    found = await unrevert(services, keeping, ConversationId(conversation_id))
    return conversation_answer(found, 200)
