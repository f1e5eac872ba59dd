"""The events of a turn and of a conversation: as an event stream, or as pages of JSON."""

import re
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Header, Query, Request, Response

from app.http.error_handlers import ProblemError
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.routers.deps import (
    CallerDep,
    ConversationPath,
    LanguageDep,
    Limit,
    StateDep,
    TurnPath,
    Until,
)
from app.routers.event_schemas import EventPage
from app.routers.streams import Streaming
from app.services.conversations import get_conversation
from app.services.event_pages import Told, page_of_conversation, page_of_turn
from app.services.found import get_turn
from app.services.reading import Cursor
from app.turn.ids import ConversationId, TurnId
from app.turn.state import Turn

router = APIRouter(tags=["events"])

_OF_A_TURN = "/turns/{turnId}/events"
_OF_A_CONVERSATION = "/conversations/{conversationId}/events"
_CURSOR = re.compile(r"(\d{1,9})(?::(\d{1,9}))?", re.ASCII)
_PLACE = re.compile(r"(\d{1,9})(?::(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": EventPage, **EVENT_STREAM},
    204: {"description": "There is no more to come, and the reader has everything."},
}


async def _streaming(
    state: StateDep, caller: CallerDep, language: LanguageDep, *, until: Until = None
) -> Streaming:
    return Streaming(
        state=state, caller=caller, language=language, until_blocked=until == "blocked"
    )


async def _place(
    after: Annotated[str | None, Query(description="An event's id: what is behind it.")] = None,
    cursor: Annotated[str | None, Query(description="The same, as other lists name it.")] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> str:
    return last_event_id or after or cursor or ""


async def _wants_pages(request: Request) -> bool:
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/event-stream" not in accept


_StreamingDep = Annotated[Streaming, Depends(_streaming)]
_PlaceDep = Annotated[str, Depends(_place)]
_WantsPages = Annotated[bool, Depends(_wants_pages)]


@router.get(
    _OF_A_TURN,
    response_class=Response,
    responses=_ANSWERS,
    openapi_extra=may_answer("turn_not_found", "cursor_invalid"),
)
async def read_events(
    turn_id: TurnPath,
    streaming: _StreamingDep,
    place: _PlaceDep,
    *,
    wants_pages: _WantsPages,
    limit: Limit = 50,
) -> Response:
    """Events behind `Last-Event-ID` (or `after`), then live, until the turn has ended.

    204 when the turn has ended and the reader has its last event; with `until=blocked` also while
    it waits. With `Accept: application/json` a page of what is there now, at most `limit` events.
    """
    services = streaming.state.services
    stored = await get_turn(services, streaming.caller, TurnId(turn_id))
    cursor = _cursor(place, stored.turn)
    if wants_pages:
        found, has_more = await page_of_turn(services, stored, cursor, limit)
        return await _page(streaming, found, has_more=has_more, is_of_conversation=False)
    if _has_no_more(streaming, stored.turn, cursor):
        return Response(status_code=204)
    streaming.check()
    return streaming.turn(stored, cursor)


@router.get(
    _OF_A_CONVERSATION,
    response_class=Response,
    responses={200: _ANSWERS[200]},
    openapi_extra=may_answer("conversation_not_found", "cursor_invalid"),
)
async def read_events_of_a_conversation(
    conversation_id: ConversationPath,
    streaming: _StreamingDep,
    place: _PlaceDep,
    *,
    wants_pages: _WantsPages,
    limit: Limit = 50,
) -> Response:
    """The events of all turns of the conversation, one turn behind the other, then live.

    Ids have the turn's number in front, from 1: `2:17:1042`. The stream ends when the conversation
    is deleted, with `until=blocked` when no turn is at work. With `Accept: application/json` a page
    of what is there now.
    """
    services, caller = streaming.state.services, streaming.caller
    named = ConversationId(conversation_id)
    await get_conversation(services, caller, named)
    of = caller.principal.tenant_id, named
    number, cursor = await _place_in_conversation(streaming, named, place)
    if wants_pages:
        found, has_more = await page_of_conversation(services, of, (number, cursor), limit)
        return await _page(streaming, found, has_more=has_more, is_of_conversation=True)
    streaming.check()
    return streaming.conversation(named, (number, cursor))


def _has_no_more(streaming: Streaming, turn: Turn, cursor: Cursor) -> bool:
    """Whether a stream would end before its first event."""
    if cursor.version < turn.version:
        return False
    return turn.is_terminal or (streaming.until_blocked and not turn.is_at_work)


def _cursor(given: str, turn: Turn) -> Cursor:
    """Where the reader stands.

    Raises:
        ProblemError: it is not an id of this stream, or of an event that has not happened.
    """
    if not given:
        return Cursor(version=0)
    match = _CURSOR.fullmatch(given)
    if match is None:
        raise ProblemError("cursor_invalid", 'an event id looks like "17" or "17:1042"')
    return _within(turn, int(match[1]), int(match[2] or 0))


async def _place_in_conversation(
    streaming: Streaming, conversation_id: ConversationId, given: str
) -> tuple[int, Cursor]:
    """The number of the reader's turn, and where it stands in that.

    Raises:
        ProblemError: as `_cursor` does.
    """
    if not given:
        return 1, Cursor(version=0)
    match = _PLACE.fullmatch(given)
    if match is None:
        raise ProblemError("cursor_invalid", 'an event id looks like "2:17" or "2:17:1042"')
    number, version, text = (int(part or 0) for part in match.groups())
    if number == 0 and version == 0 and text == 0:
        return 1, Cursor(version=0)
    tenant_id = streaming.caller.principal.tenant_id
    stored = await streaming.state.services.feeds.turn_from(tenant_id, conversation_id, number)
    if stored is None or stored.number != number:
        raise ProblemError("cursor_invalid", f"the conversation has no turn {number}")
    return number, _within(stored.turn, version, text)


def _within(turn: Turn, version: int, text: int) -> Cursor:
    if version > turn.version:
        raise ProblemError("cursor_invalid", f"the turn is at version {turn.version}")
    return Cursor(version=version, text=text)


async def _page(
    streaming: Streaming, found: list[Told], *, has_more: bool, is_of_conversation: bool
) -> Response:
    items = [await streaming.written(told.stored, told.followed) for told in found]
    last = found[-1] if found else None
    place = last and str(last.followed.cursor)
    if last is not None and is_of_conversation:
        place = f"{last.stored.number}:{place}"
    body = {"items": items, "nextCursor": place if has_more else None, "lastEventId": place}
    return Response(orjson.dumps(body), media_type="application/json")
