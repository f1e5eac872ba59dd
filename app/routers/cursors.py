"""Cursors of lists: opaque to callers, a time and an id inside, so that pages never shift."""

import base64
import binascii
import re
from datetime import UTC, datetime

import orjson

from app.http.error_handlers import ProblemError
from app.routers.wire import ID_PATTERN


def encode_cursor(at: datetime, item_id: str) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([at, item_id])).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    """The place a cursor names; `None` for the beginning.

    Raises:
        ProblemError: it is not one of ours.
    """
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, item_id = orjson.loads(base64.b64decode(padded, altchars="-_", validate=True))
        place = datetime.fromisoformat(at)
        if place.tzinfo is None or not re.fullmatch(ID_PATTERN, item_id):
            raise _not_ours()
        return place.astimezone(UTC), item_id
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        raise _not_ours() from error


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


def _not_ours() -> ProblemError:
    return ProblemError("cursor_invalid", "use the nextCursor of the page before")
