"""Cursors of lists: opaque to callers, a time and an id inside, so that pages never shift."""

import base64
import binascii
import re
from datetime import UTC, datetime

import orjson

from app.http.error_handlers import ProblemError
from app.routers.wire import ID_PATTERN
from app.turn.ids import CallId, TurnId


def encode_cursor(at: datetime, item_id: str) -> str:
    return _encoded([at, item_id])


def decode_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    """The place a cursor names; `None` for the beginning.

    Raises:
        ProblemError: it is not one of ours.
    """
    if cursor is None:
        return None
    place, (item_id,) = _decoded(cursor, 1)
    if not re.fullmatch(ID_PATTERN, item_id):
        raise _not_ours()
    return place, item_id


def encode_call(at: datetime, turn_id: TurnId, call_id: CallId) -> str:
    return _encoded([at, turn_id, call_id])


def decode_call(cursor: str | None) -> tuple[datetime, TurnId, CallId] | None:
    """The call a cursor names, by its time and ids; `None` for the beginning.

    Raises:
        ProblemError: it is not one of ours.
    """
    if cursor is None:
        return None
    place, (turn_id, call_id) = _decoded(cursor, 2)
    return place, TurnId(turn_id), CallId(call_id)


def decode_position(cursor: str | None) -> int:
    """The place in a transcript; -1 for the beginning.

    Raises:
        ProblemError: it is not one of ours.
    """
    if cursor is None:
        return -1
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 9):
        raise _not_ours()
    return int(cursor)


def _encoded(place: list[object]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def _decoded(cursor: str, ids: int) -> tuple[datetime, list[str]]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, *found = orjson.loads(base64.b64decode(padded, altchars="-_", validate=True))
        place = datetime.fromisoformat(at)
        if place.tzinfo is None or len(found) != ids or not all(map(_is_storable, found)):
            raise _not_ours()
        return place.astimezone(UTC), found
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        raise _not_ours() from error


def _is_storable(found: object) -> bool:
    return isinstance(found, str) and "\0" not in found


def _not_ours() -> ProblemError:
    return ProblemError("cursor_invalid", "use the nextCursor of the page before")
