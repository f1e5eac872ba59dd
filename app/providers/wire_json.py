"""JSON from strangers: read tolerantly, narrowed at once, never trusted to have a shape."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

import orjson

JsonObject: TypeAlias = Mapping[str, object]

_MOST = 2**53 - 1  # the largest whole number that every reader of JSON has
_SURROGATES = re.compile("[\ud800-\udfff]")


def parsed(text: str | bytes) -> object:
    """The value a JSON text stands for; `None` too when it is no JSON.

    orjson refuses lone surrogates and NaN, which providers send; the standard library reads them.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _parsed_leniently(text)


def _parsed_leniently(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_text(value: object) -> str:
    """A parsed value as JSON again, also one that only the lenient reader takes.

    Lone surrogates are replaced; a value nested too deeply for any encoder becomes `null`.
    """
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        pass
    try:
        return mended(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return "null"


def parsed_object(text: str | bytes) -> JsonObject | None:
    """The JSON object a text stands for, if it is one."""
    value = parsed(text)
    return value if is_object(value) else None


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether this is a JSON object; the keys of a parsed one are always text."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[Sequence[object]]:
    """Whether this is a JSON array."""
    return isinstance(value, list)


def as_object(value: object) -> JsonObject:
    """The value where it is a JSON object, else an empty one."""
    return value if is_object(value) else {}


def as_array(value: object) -> Sequence[object]:
    """The value where it is a JSON array, else an empty one."""
    return value if is_array(value) else ()


def as_text(value: object) -> str:
    """The value where it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int | None:
    """The value where it is a whole number from 0 to 2^53 - 1; `True` is none.

    What is larger is no count of anything, and nothing behind this could store or answer it.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MOST else None


def has_surrogate(text: str) -> bool:
    """Whether the text holds a half of a surrogate pair, which UTF-8 cannot encode."""
    return not text.isascii() and _SURROGATES.search(text) is not None


def mended(text: str) -> str:
    """The text with halves of surrogate pairs joined, and lone ones replaced by U+FFFD."""
    if not has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
