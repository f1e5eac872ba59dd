"""Answers that are a turn: the resource, its tag, where its events are."""

from collections.abc import Sequence

import orjson
from fastapi import Response

from app.http.etags import etag
from app.http.sse import event_stream
from app.ports import StoredTurn
from app.routers.deps import AppState
from app.routers.event_schemas import Reader, stream_event
from app.routers.sentences import Language
from app.routers.turn_schemas import (
    PostedTurnOutput,
    TurnOutput,
    posted_turn_output,
    turn_output,
)
from app.routers.wire import Output
from app.services.deps import Caller, Services
from app.services.follow import Cursor, Feed, follow
from app.services.turns import offered
from app.turn.ids import Identity


async def turn_resource(
    services: Services, caller: Caller, stored: StoredTurn, language: Language
) -> TurnOutput:
    return (await turn_resources(services, caller, [stored], language))[0]


async def turn_resources(
    services: Services, caller: Caller, stored: Sequence[StoredTurn], language: Language
) -> list[TurnOutput]:
    texts = await services.turns.final_texts([item.turn for item in stored])
    return [
        turn_output(
            item,
            final_output=texts.get(item.turn.identity.turn_id),
            principal=caller.principal,
            language=language,
            actions=offered(services, item.turn),
        )
        for item in stored
    ]


async def posted_turn(
    services: Services,
    caller: Caller,
    stored: StoredTurn,
    language: Language,
    *,
    message_id: str,
    seen_version: int,
) -> PostedTurnOutput:
    """The turn that took a message; its events from behind `seen_version` on."""
    turn_id = stored.turn.identity.turn_id
    texts = await services.turns.final_texts([stored.turn])
    return posted_turn_output(
        stored,
        message_id=message_id,
        events_url=f"/turns/{turn_id}/events?after={seen_version}",
        final_output=texts.get(turn_id),
        principal=caller.principal,
        language=language,
        actions=offered(services, stored.turn),
    )


def turn_headers(stored: StoredTurn) -> dict[str, str]:
    turn = stored.turn
    return {
        "ETag": etag(turn.version),
        "Location": f"/turns/{turn.identity.turn_id}",
    }


def json_answer(body: Output, status_code: int, headers: dict[str, str]) -> Response:
    content = orjson.dumps(body.model_dump(mode="json"))
    return Response(content, status_code, headers, media_type="application/json")


def events_after(
    state: AppState, caller: Caller, stored: StoredTurn, seen_version: int, language: Language
) -> Response:
    """What a request to a turn brought, as events: all behind the version it was seen at."""
    return stream_answer(
        state,
        caller,
        stored.turn.identity,
        Cursor(version=seen_version),
        language,
        headers=turn_headers(stored),
    )


def stream_answer(
    state: AppState,
    caller: Caller,
    identity: Identity,
    cursor: Cursor,
    language: Language,
    *,
    headers: dict[str, str] | None = None,
) -> Response:
    """The turn's events behind `cursor`, as they come."""
    feed: Feed = follow(state.services, identity, cursor, stopping=state.stopping)
    reader = Reader(principal=caller.principal, language=language)
    events = ([stream_event(one, identity, reader) for one in news] async for news in feed)
    return event_stream(events, headers or {})
