"""Entity tags: a turn's version is its tag."""

import re
from typing import Any

from app.http.error_handlers import ProblemError

TURN_HEADERS: dict[str, Any] = {
    "ETag": {"description": "The turn's version; for `If-Match`.", "schema": {"type": "string"}},
    "Location": {"description": "Where the turn is.", "schema": {"type": "string"}},
}
"""How the headers of an answer that is a turn are described."""

_TAG = re.compile(r'(?:W/)?"(\d{1,9})"')


def etag(version: int) -> str:
    return f'"{version}"'


def version_in(if_match: str | None) -> int | None:
    """The version an `If-Match` header asks for; `None` when any will do.

    Raises:
        ProblemError: the header is not one tag of ours.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    match = _TAG.fullmatch(if_match.strip())
    if match is None:
        raise ProblemError("bad_request", 'If-Match takes one version, such as "17", or *')
    return int(match[1])


def versions_in(if_none_match: str | None) -> frozenset[int]:
    """The versions an `If-None-Match` header names; what is no tag of ours names none."""
    tags = (if_none_match or "").split(",")
    return frozenset(int(match[1]) for tag in tags if (match := _TAG.fullmatch(tag.strip())))
