"""`GET /turns/{id}/events`: everything that happened and happens, as an event stream."""

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from app.http.error_handlers import ProblemError
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.routers.answers import stream_answer
from app.routers.deps import CallerDep, LanguageDep, StateDep, TurnPath
from app.services.follow import Cursor
from app.services.found import get_turn
from app.turn.ids import TurnId
from app.turn.state import Turn

router = APIRouter(prefix="/turns/{turnId}/events", tags=["events"])

_CURSOR = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


@router.get(
    "",
    response_class=Response,
    responses={200: EVENT_STREAM, 204: {"description": "The turn has ended, and that is all."}},
    openapi_extra=may_answer("turn_not_found", "cursor_invalid"),
)
async def read_events(
    turn_id: TurnPath,
    state: StateDep,
    caller: CallerDep,
    language: LanguageDep,
    after: Annotated[str | None, Query(description="A version, or an event's id.")] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """Events behind `Last-Event-ID` (or `after`), then live, until the turn has ended.

    204 when the turn has ended and the reader has its last event.
    """
    stored = await get_turn(state.services, caller, TurnId(turn_id))
    cursor = _cursor(last_event_id or after, stored.turn)
    if stored.turn.is_terminal and cursor.version == stored.turn.version:
        return Response(status_code=204)
    return stream_answer(state, caller, stored.turn.identity, cursor, language)


def _cursor(given: str | None, turn: Turn) -> Cursor:
    """Where the reader stands.

    Raises:
        ProblemError: it is not an id of this stream, or of an event that has not happened.
    """
    if not given:
        return Cursor(version=0)
    match = _CURSOR.fullmatch(given)
    if match is None:
        raise ProblemError("cursor_invalid", 'an event id looks like "17" or "17:1042"')
    version = int(match[1])
    if version > turn.version:
        raise ProblemError("cursor_invalid", f"the turn is at version {turn.version}")
    return Cursor(version=version, text=int(match[2] or 0))
