"""`/conversations/{id}/messages`."""

from fastapi import APIRouter, Response

from app.http.openapi import may_answer
from app.routers.cursors import decode_position
from app.routers.deps import CallerDep, ConversationPath, CursorText, Limit, StateDep
from app.routers.exchange import KEYED, ExchangeDep
from app.routers.message_schemas import MessageBody, MessagePage, message_output
from app.routers.posting import MAY_ANSWER, POSTED, DryRun, answer_to
from app.routers.turn_schemas import PostedTurnOutput
from app.services.conversations import list_messages
from app.turn.ids import ConversationId

router = APIRouter(prefix="/conversations/{conversationId}/messages", tags=["messages"])


@router.post(
    "",
    status_code=202,
    response_model=PostedTurnOutput,
    responses=POSTED,
    dependencies=[KEYED],
    openapi_extra=MAY_ANSWER,
)
async def post_a_message(
    conversation_id: ConversationPath,
    body: MessageBody,
    exchange: ExchangeDep,
    *,
    dry_run: DryRun = False,
) -> Response:
    """Opens a turn, or goes on with the one that waits.

    The conversation is made when it is new. While its turn is at work, `whenRunning` lets the
    message wait (`queue`, answered with the turn that holds it until it opens the next one) or be
    heard by that turn at its next boundary (`steer`). A message whose `messageId` is known has no
    further effect and answers with the turn that has it, marked `Idempotency-Replayed: true`.
    `Prefer: wait=20` waits until the turn rests, at most 60 s; `Accept: text/event-stream` answers
    with the turn's events. With `dryRun=true` the answer says what the message would do, and
    nothing is done.
    """
    return await answer_to(exchange, body, conversation_id, is_dry_run=dry_run)


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
