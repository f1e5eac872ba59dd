"""Cursors of lists: opaque to callers, a time and an id inside, so that pages never shift."""

import base64
import binascii
from datetime import datetime

import orjson

from app.http.error_handlers import ProblemError


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
        place = datetime.fromisoformat(at), str(item_id)
    except (binascii.Error, ValueError, TypeError) as error:
        raise ProblemError("cursor_invalid", "use the nextCursor of the page before") from error
    if place[0].tzinfo is None or "\0" in place[1]:
        raise ProblemError("cursor_invalid", "use the nextCursor of the page before")
    return place


def decode_position(cursor: str | None) -> int:
    """The place in a transcript; -1 for the beginning.

    Raises:
        ProblemError: it is not one of ours.
    """
    if cursor is None:
        return -1
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 9):
        raise ProblemError("cursor_invalid", "use the nextCursor of the page before")
    return int(cursor)
