"""Ids and names of tool calls in the few characters that every provider takes.

Ids come from whatever provider made the call, and another may refuse them. What is sent instead is
made from the id alone, so that call and result agree without anything being remembered.
"""

import re
from hashlib import sha256

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_MOST_ID_CHARACTERS = 64
_MOST_NAME_CHARACTERS = 64
_DIGEST_CHARACTERS = 12


def plain_id(call_id: str) -> str:
    """The id itself where it is plain, else one of its own that no other id has."""
    if _PLAIN.fullmatch(call_id) and len(call_id) <= _MOST_ID_CHARACTERS:
        return call_id
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    start = _OTHER.sub("_", call_id)[: _MOST_ID_CHARACTERS - _DIGEST_CHARACTERS - 1]
    return f"{start}_{digest}"


def plain_name(name: str) -> str:
    """A tool's name; one that a model has invented may hold anything."""
    return _OTHER.sub("_", name)[:_MOST_NAME_CHARACTERS] or "_"
