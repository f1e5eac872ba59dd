"""Ids and names of tool calls in the few characters that every provider takes.

Ids come from whatever provider made the call, and another may refuse them. What is sent instead is
made from the id alone, so that call and result agree without anything being remembered.
"""

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Literal, TypeAlias

CallIds: TypeAlias = Literal["any", "nine_characters"]
"""Which ids of calls a provider takes: any, or only nine letters and digits, as Mistral does."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_MOST_ID_CHARACTERS = 64
_MOST_NAME_CHARACTERS = 64
_DIGEST_CHARACTERS = 12
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def plain_id(call_id: str) -> str:
    """The id itself where it is plain, else one of its own that no other id has."""
    if _PLAIN.fullmatch(call_id) and len(call_id) <= _MOST_ID_CHARACTERS:
        return call_id
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    start = _OTHER.sub("_", call_id)[: _MOST_ID_CHARACTERS - _DIGEST_CHARACTERS - 1]
    return f"{start}_{digest}"


def nine_characters(call_id: str) -> str:
    """The id itself where it has nine letters and digits, else such an id made from it."""
    if _NINE.fullmatch(call_id):
        return call_id
    number = int.from_bytes(sha256(call_id.encode("utf-8", "surrogatepass")).digest())
    places = (number // len(_LETTERS) ** place for place in range(9))
    return "".join(_LETTERS[left % len(_LETTERS)] for left in places)


FITTING_IDS: Mapping[CallIds, Callable[[str], str] | None] = MappingProxyType(
    {"any": None, "nine_characters": nine_characters}
)
"""What makes an id fit; `None` where every id does."""


def plain_name(name: str) -> str:
    """A tool's name; one that a model has invented may hold anything."""
    return _OTHER.sub("_", name)[:_MOST_NAME_CHARACTERS] or "_"
