"""Answers that are a conversation, and the reply that is kept of one."""

from dataclasses import replace

from fastapi import Response

from app.http.idempotency import RequestKey, kept_reply
from app.ports import ConversationSummary, KeptReply, StoredTurn
from app.routers.answers import json_answer
from app.routers.message_schemas import conversation_output
from app.services.deps import Caller


def conversation_answer(found: ConversationSummary, status_code: int) -> Response:
    headers = {"Location": f"/conversations/{found.conversation.conversation_id}"}
    return json_answer(conversation_output(found), status_code, headers)


def keeping_conversation(caller: Caller, key: RequestKey | None, status_code: int) -> Caller:
    """The caller, whose reply is kept if the request has a key."""
    if key is None:
        return caller

    async def keep(what: StoredTurn | ConversationSummary, _seen_version: int) -> KeptReply:
        if not isinstance(what, ConversationSummary):
            raise TypeError(what)
        answer = conversation_answer(what, status_code)
        return kept_reply(key, answer, events_url=None, answering_seconds=0)

    return replace(caller, keep=keep)
