"""Answers that are a turn: the resource, its tag, where its events are."""

from collections.abc import Sequence
from typing import Any

import orjson
from fastapi import Response

from app.http.etags import TURN_HEADERS, etag
from app.http.languages import Language
from app.ports import StoredTurn
from app.routers.reader import reader_of
from app.routers.turn_schemas import (
    PostedTurnOutput,
    TurnOutput,
    posted_turn_output,
    turn_output,
)
from app.routers.wire import Output
from app.services.deps import Caller, Services
from app.services.turns import offered


async def turn_resource(
    services: Services, caller: Caller, stored: StoredTurn, language: Language
) -> TurnOutput:
    return (await turn_resources(services, caller, [stored], language))[0]


async def turn_resources(
    services: Services, caller: Caller, stored: Sequence[StoredTurn], language: Language
) -> list[TurnOutput]:
    texts = await services.turns.final_texts([item.turn for item in stored])
    reader = reader_of(services, caller, language)
    return [
        turn_output(
            item,
            final_output=texts.get(item.turn.identity.turn_id),
            reader=reader,
            actions=offered(services, item.turn, caller.principal),
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
        reader=reader_of(services, caller, language),
        actions=offered(services, stored.turn, caller.principal),
    )


def now_or_soon(model: type[TurnOutput], soon: str) -> dict[int | str, dict[str, Any]]:
    """How the answers 200, it is done, and 202, `soon` it will be, are described."""
    return {
        200: {"headers": TURN_HEADERS},
        202: {"model": model, "description": soon, "headers": TURN_HEADERS},
    }


def turn_headers(stored: StoredTurn) -> dict[str, str]:
    turn = stored.turn
    return {
        "ETag": etag(turn.version),
        "Location": f"/turns/{turn.identity.turn_id}",
    }


def json_answer(body: Output, status_code: int, headers: dict[str, str]) -> Response:
    content = orjson.dumps(body.model_dump(mode="json"))
    return Response(content, status_code, headers, media_type="application/json")
