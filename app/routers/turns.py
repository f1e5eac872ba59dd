"""`/turns`: reading them, and pausing one."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from app.http.etags import TURN_HEADERS, versions_in
from app.http.openapi import may_answer
from app.ports import StoredTurn
from app.routers.answers import (
    json_answer,
    now_or_soon,
    turn_headers,
    turn_resource,
    turn_resources,
)
from app.routers.cursors import decode_cursor, decode_position, encode_cursor
from app.routers.deps import (
    CallerDep,
    CursorText,
    IfMatch,
    LanguageDep,
    Limit,
    ServicesDep,
    StateDep,
    TurnPath,
)
from app.routers.exchange import KEYED, ExchangeDep
from app.routers.failure_schemas import FailurePage, failure_output
from app.routers.interruption_schemas import InterruptionOutput, InterruptionPage
from app.routers.preferences import LONGEST_WAIT_SECONDS
from app.routers.reader import reader_of
from app.routers.turn_schemas import TurnOutput, TurnPage
from app.routers.wire import ID_PATTERN
from app.services.commands import Commanded
from app.services.deps import Caller
from app.services.found import get_turn
from app.services.turns import (
    list_failures,
    list_interruptions,
    list_turns,
    pause,
    wait_for_change,
)
from app.turn.ids import ConversationId, TurnId
from app.turn.status import Status

router = APIRouter(prefix="/turns", tags=["turns"])

_ONE = "/{turnId}"


@router.get("", openapi_extra=may_answer("cursor_invalid", "payload_invalid"))
async def read_turns(
    services: ServicesDep,
    caller: CallerDep,
    language: LanguageDep,
    status: Annotated[list[Status], Query(default_factory=list)],
    conversation_id: Annotated[
        str | None, Query(alias="conversationId", pattern=ID_PATTERN)
    ] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> TurnPage:
    """Newest first; `status` may be given more than once."""
    place = decode_cursor(cursor)
    found = await list_turns(
        services,
        caller,
        statuses=status,
        conversation_id=None if conversation_id is None else ConversationId(conversation_id),
        before=None if place is None else (place[0], TurnId(place[1])),
        limit=limit,
    )
    last = found[-1].turn if len(found) == limit else None
    return TurnPage(
        items=await turn_resources(services, caller, found, language),
        next_cursor=last and encode_cursor(last.created_at, last.identity.turn_id),
    )


@router.get(
    _ONE,
    response_model=TurnOutput,
    responses={
        200: {"headers": TURN_HEADERS},
        304: {"description": "It is at the version that `If-None-Match` names."},
    },
    openapi_extra=may_answer("turn_not_found"),
)
async def read_a_turn(
    turn_id: TurnPath,
    state: StateDep,
    caller: CallerDep,
    language: LanguageDep,
    *,
    if_none_match: Annotated[str | None, Header(description="A version, as in `ETag`.")] = None,
    wait: Annotated[
        int,
        Query(ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait for another version."),
    ] = 0,
) -> Response:
    """The turn as it is; with `If-None-Match` only if it is at another version.

    `wait` then waits until it is, at most so many seconds; without `If-None-Match` there is nothing
    to wait for.
    """
    services = state.services
    stored = await get_turn(services, caller, TurnId(turn_id))
    known = versions_in(if_none_match)
    if stored.turn.version in known:
        stored = await wait_for_change(
            services, caller, stored, seconds=wait, stopping=state.stopping
        )
    if stored.turn.version in known:
        return Response(status_code=304, headers=turn_headers(stored))
    body = await turn_resource(services, caller, stored, language)
    return json_answer(body, 200, turn_headers(stored))


@router.get(f"{_ONE}/failures", openapi_extra=may_answer("turn_not_found", "cursor_invalid"))
async def read_failures(
    turn_id: TurnPath,
    services: ServicesDep,
    caller: CallerDep,
    language: LanguageDep,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> FailurePage:
    """Every recognised failure of the turn's model calls, oldest first, retried ones included."""
    after = decode_position(cursor)
    reader = reader_of(services, caller, language)
    found = await list_failures(services, caller, TurnId(turn_id), after=after, limit=limit)
    return FailurePage(
        items=[failure_output(record, reader) for record in found],
        next_cursor=str(found[-1].model_attempt) if len(found) == limit else None,
    )


@router.get(f"{_ONE}/interruptions", openapi_extra=may_answer("turn_not_found", "cursor_invalid"))
async def read_interruptions(
    turn_id: TurnPath,
    services: ServicesDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> InterruptionPage:
    """The calls that were answered without a result of their tool, in the order they were asked."""
    after = decode_position(cursor)
    found = await list_interruptions(services, caller, TurnId(turn_id), after=after, limit=limit)
    return InterruptionPage(
        items=[InterruptionOutput.model_validate(each, from_attributes=True) for each in found],
        next_cursor=str(found[-1].position) if len(found) == limit else None,
    )


@router.post(
    f"{_ONE}/pause",
    response_model=TurnOutput,
    responses=now_or_soon(TurnOutput, "It pauses as soon as what is in flight has ended."),
    dependencies=[KEYED],
    openapi_extra=may_answer(
        "turn_not_found",
        "wrong_command",
        "turn_terminal",
        "version_conflict",
        "precondition_failed",
    ),
)
async def pause_a_turn(turn_id: TurnPath, exchange: ExchangeDep, if_match: IfMatch) -> Response:
    """Stops the turn where it stands, at once (200) or when tools in flight have ended (202).

    A model call is dropped at once, and what has come of its answer is stored: the reply waits for
    that, up to two seconds and without an Idempotency-Key. `RESUME` goes on with everything that
    was kept.
    """

    async def command(caller: Caller) -> Commanded:
        return await pause(exchange.services, caller, TurnId(turn_id), expected_version=if_match)

    async def render(stored: StoredTurn, _seen_version: int) -> Response:
        return await exchange.turn(stored, 200 if stored.turn.status is Status.PAUSED else 202)

    return await exchange.answer_when_dropped(command, render)
