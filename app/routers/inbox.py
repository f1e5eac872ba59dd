"""`/waits`, and of a turn its approvals and late results."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query

from app.http.languages import Language
from app.http.openapi import may_answer
from app.ports import WaitingTurn
from app.routers.cursors import decode_cursor, decode_position, encode_cursor
from app.routers.deps import (
    CallerDep,
    CursorText,
    LanguageDep,
    Limit,
    ServicesDep,
    TurnPath,
)
from app.routers.inbox_schemas import (
    ApprovalPage,
    LateResultPage,
    WaitItem,
    WaitPage,
    approval_outputs,
    late_result_outputs,
)
from app.routers.reader import reader_of
from app.routers.turn_schemas import action_outputs
from app.routers.wait_schemas import wait_outputs
from app.services.calls import list_approvals, list_late_results
from app.services.deps import Caller, Services
from app.services.turns import offered
from app.services.waits import Whose, is_for, list_waiting
from app.turn.ids import TurnId

router = APIRouter(tags=["waits"])

_TURN = "/turns/{turnId}"


@router.get("/waits", openapi_extra=may_answer("cursor_invalid", "payload_invalid", "forbidden"))
async def read_waits(
    services: ServicesDep,
    caller: CallerDep,
    language: LanguageDep,
    whose: Annotated[Whose, Query(alias="for")] = "me",
    limit: Limit = 50,
    cursor: CursorText = None,
) -> WaitPage:
    """What waits for somebody, longest first; an item for each thing that a turn waits for.

    `for=me` is what waits in the caller's own conversations; for an operator also every approval
    and every outside call of the tenant, since they may answer those as well. `for=tenant` is all
    there is, for operators. `limit` counts turns: one of them may wait for several things.
    """
    place = decode_cursor(cursor)
    found = await list_waiting(
        services,
        caller,
        whose=whose,
        after=None if place is None else (place[0], TurnId(place[1])),
        limit=limit,
    )
    last = found[-1] if len(found) == limit else None
    return WaitPage(
        items=[item for turn in found for item in _items(services, caller, language, whose, turn)],
        next_cursor=last and encode_cursor(last.waiting_since, last.stored.turn.identity.turn_id),
    )


@router.get(f"{_TURN}/approvals", openapi_extra=may_answer("turn_not_found", "cursor_invalid"))
async def read_approvals(
    turn_id: TurnPath,
    services: ServicesDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> ApprovalPage:
    """What people have approved and rejected in the turn, in order; of a call each level."""
    after = decode_position(cursor)
    found = await list_approvals(services, caller, TurnId(turn_id), after=after, limit=limit)
    return ApprovalPage(
        items=approval_outputs(found),
        next_cursor=str(found[-1].seq) if len(found) == limit else None,
    )


@router.get(f"{_TURN}/late-results", openapi_extra=may_answer("turn_not_found", "cursor_invalid"))
async def read_late_results(
    turn_id: TurnPath,
    services: ServicesDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> LateResultPage:
    """Results from outside that came when their call took none any more, in the order they came.

    Each was refused, and no model ever reads it. A turn keeps 1,000, the first 64 KiB of each.
    """
    after = decode_position(cursor)
    found = await list_late_results(services, caller, TurnId(turn_id), after=after, limit=limit)
    return LateResultPage(
        items=late_result_outputs(found),
        next_cursor=str(found[-1].seq) if len(found) == limit else None,
    )


def _items(
    services: Services, caller: Caller, language: Language, whose: Whose, waiting: WaitingTurn
) -> Iterator[WaitItem]:
    turn = waiting.stored.turn
    actions = action_outputs(offered(services, turn, caller.principal), language)
    for wait in wait_outputs(turn, reader_of(services, caller, language)):
        if is_for(caller.principal, whose, waiting, wait.suspension_type):
            yield WaitItem(
                turn_id=turn.identity.turn_id,
                conversation_id=turn.identity.conversation_id,
                agent_id=turn.identity.agent_id,
                status=turn.status,
                title=waiting.title,
                wait=wait,
                actions=[each for each in actions if each.call_id in {None, wait.call_id}],
            )
