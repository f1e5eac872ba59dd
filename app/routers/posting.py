"""What every route that takes a user's message does with it: foresee it, or take it and answer."""

from typing import Annotated, Any

from fastapi import Query, Response

from app.http.etags import TURN_HEADERS
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.ports import StoredTurn
from app.routers.answers import json_answer, posted_turn, turn_headers
from app.routers.exchange import Exchange
from app.routers.foreseen_schemas import ForeseenOutput, foreseen_output, refused_output
from app.routers.message_schemas import MessageBody
from app.routers.reader import reader_of
from app.services.deps import Caller
from app.services.drafts import Draft, conversation_of
from app.services.errors import Refused
from app.services.foreseen import foresee
from app.services.messages import Posted, post_message
from app.turn.errors import Rejected
from app.turn.ids import AgentId, ConversationId, MessageId

POSTED: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ForeseenOutput,
        "description": f"What it would do, for `dryRun=true`. {EVENT_STREAM['description']}",
        "content": EVENT_STREAM["content"],
    },
    202: {"headers": TURN_HEADERS},
}
"""How the answers of these routes are described."""

MAY_ANSWER = may_answer(
    "conversation_not_found",
    "conversation_busy",
    "version_conflict",
    "agent_version_unavailable",
    "messages_required",
)

DryRun = Annotated[
    bool,
    Query(alias="dryRun", description="Only say what the message would do now; nothing is kept."),
]


async def answer_to(
    exchange: Exchange,
    body: MessageBody,
    conversation_id: str | None,
    *,
    is_dry_run: bool,
    starts: bool = False,
) -> Response:
    """The turn that has taken the message; for a dry run what the message would do.

    Without a conversation one is made; with `starts` the message opens a turn or is refused.
    """
    draft = _draft(exchange, body, conversation_id, starts=starts)
    if is_dry_run:
        return await _foreseen(exchange, draft)

    async def post(caller: Caller) -> Posted:
        return await post_message(exchange.services, caller, draft)

    async def render(stored: StoredTurn, seen_version: int) -> Response:
        answer = await posted_turn(
            exchange.services,
            exchange.caller,
            stored,
            exchange.language,
            message_id=draft.message_id,
            seen_version=seen_version,
        )
        return json_answer(answer, 202, turn_headers(stored))

    return await exchange.answer(post, render)


def _draft(
    exchange: Exchange, body: MessageBody, conversation_id: str | None, *, starts: bool
) -> Draft:
    message_id = MessageId(body.message_id or exchange.services.new_id("msg"))
    named = None if conversation_id is None else ConversationId(conversation_id)
    return Draft(
        conversation_id=named or conversation_of(exchange.caller, message_id),
        content=body.parts(),
        message_id=message_id,
        agent_id=None if body.agent_id is None else AgentId(body.agent_id),
        is_in_new_conversation=named is None,
        starts=starts,
        when_running=body.when_running,
        hold=body.hold,
        never_replay=body.never_replay,
        recover_first=body.recover_first,
    )


async def _foreseen(exchange: Exchange, draft: Draft) -> Response:
    services = exchange.services
    try:
        foreseen = foreseen_output(await foresee(services, exchange.caller, draft))
    except (Rejected, Refused) as refusal:
        foreseen = refused_output(
            refusal, draft, services, reader_of(services, exchange.caller, exchange.language)
        )
    return json_answer(foreseen, 200, {})
