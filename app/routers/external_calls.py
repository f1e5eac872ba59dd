"""`/external-calls`: what outside tools are to do, for whoever carries it out."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.http.idempotency import kept_reply
from app.http.openapi import may_answer
from app.ports import ExternalCall, ExternalStatus, KeptReply
from app.routers.answers import json_answer
from app.routers.cursors import decode_call, encode_call
from app.routers.deps import CallerDep, Limit, LongCursorText, ServicesDep
from app.routers.exchange import KEYED, KeyDep
from app.routers.external_call_schemas import (
    ClaimBody,
    ClaimedCalls,
    ExternalCallPage,
    ToolName,
    call_outputs,
    claim_of,
)
from app.services.external_calls import claim_calls, list_calls

router = APIRouter(prefix="/external-calls", tags=["external calls"])


@router.get("", openapi_extra=may_answer("cursor_invalid", "payload_invalid"))
async def read_external_calls(
    services: ServicesDep,
    caller: CallerDep,
    tool: Annotated[list[ToolName], Query(default_factory=list)],
    status: ExternalStatus | None = None,
    limit: Limit = 50,
    cursor: LongCursorText = None,
) -> ExternalCallPage:
    """Calls that were handed to outside tools, oldest first.

    Operators see their tenant's, everybody else those of their own turns. `status` is `open` while
    a result is waited for; `tool` may be given more than once.
    """
    found = await list_calls(
        services, caller, status=status, tools=tool, after=decode_call(cursor), limit=limit
    )
    last = found[-1] if len(found) == limit else None
    return ExternalCallPage(
        items=call_outputs(found),
        next_cursor=last and encode_call(last.requested_at, last.turn_id, last.call_id),
    )


@router.post(
    "/claim",
    response_model=ClaimedCalls,
    dependencies=[KEYED],
)
async def claim_external_calls(
    services: ServicesDep, caller: CallerDep, key: KeyDep, body: ClaimBody
) -> Response:
    """Takes open calls that no other executor is at, oldest first; none is no error.

    While the lease lasts nobody else is given them. A claim is a courtesy between executors: the
    result is sent with `TOOL_RESULT` or `TOOL_ERROR` to `POST /turns/{turnId}/resume`, and that of
    anybody who may command is taken, also without a claim. A call may come to you twice, or after
    somebody else has begun it: do it under its `idempotencyKey`.
    """

    def keep(claimed: Sequence[ExternalCall]) -> KeptReply | None:
        if key is None:
            return None
        return kept_reply(key, _answer(claimed), events_url=None, answering_seconds=0)

    return _answer(await claim_calls(services, caller, claim_of(body), keep))


def _answer(claimed: Sequence[ExternalCall]) -> Response:
    return json_answer(ClaimedCalls(items=call_outputs(claimed)), 200, {})
