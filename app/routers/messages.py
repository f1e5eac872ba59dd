"""`/conversations/{id}/messages`."""

from fastapi import APIRouter, Response

from app.http.etags import TURN_HEADERS
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.ports import StoredTurn
from app.routers.answers import json_answer, posted_turn, turn_headers
from app.routers.cursors import decode_position
from app.routers.deps import CallerDep, ConversationPath, CursorText, Limit, StateDep
from app.routers.exchange import KEYED, ExchangeDep
from app.routers.message_schemas import MessageBody, MessagePage, message_output
from app.routers.turn_schemas import PostedTurnOutput
from app.services.conversations import list_messages
from app.services.deps import Caller
from app.services.messages import Draft, Posted, post_message
from app.turn.ids import AgentId, ConversationId, MessageId

router = APIRouter(prefix="/conversations/{conversationId}/messages", tags=["messages"])


@router.post(
    "",
    status_code=202,
    response_model=PostedTurnOutput,
    responses={200: EVENT_STREAM, 202: {"headers": TURN_HEADERS}},
    dependencies=[KEYED],
    openapi_extra=may_answer(
        "conversation_not_found",
        "conversation_busy",
        "version_conflict",
        "agent_version_unavailable",
        "messages_required",
    ),
)
async def post_a_message(
    conversation_id: ConversationPath, body: MessageBody, exchange: ExchangeDep
) -> Response:
    """Opens a turn, or goes on with the one that waits.

    The conversation is made when it is new. A message whose `messageId` is known has no further
    effect and answers with the turn that took it. `Prefer: wait=20` waits until the turn rests,
    at most 60 s; `Accept: text/event-stream` answers with the turn's events.
    """
    services = exchange.services
    draft = Draft(
        conversation_id=ConversationId(conversation_id),
        content=body.parts(),
        message_id=MessageId(body.message_id or services.new_id("msg")),
        agent_id=None if body.agent_id is None else AgentId(body.agent_id),
    )

    async def post(caller: Caller) -> Posted:
        return await post_message(services, caller, draft)

    async def render(stored: StoredTurn, seen_version: int) -> Response:
        answer = await posted_turn(
            services,
            exchange.caller,
            stored,
            exchange.language,
            message_id=draft.message_id,
            seen_version=seen_version,
        )
        return json_answer(answer, 202, turn_headers(stored))

    return await exchange.answer(post, render)


@router.get(
    "", openapi_extra=may_answer("conversation_not_found", "cursor_invalid", "payload_invalid")
)
async def read_messages(
    conversation_id: ConversationPath,
    state: StateDep,
    caller: CallerDep,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> MessagePage:
    """The transcript, in order; a cursor stays good while messages are added."""
    found = await list_messages(
        state.services,
        caller,
        ConversationId(conversation_id),
        after=decode_position(cursor),
        limit=limit,
    )
    is_full = len(found) == limit
    return MessagePage(
        items=[message_output(message) for message in found],
        next_cursor=str(found[-1].position) if is_full else None,
    )
