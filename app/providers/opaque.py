"""What nobody but its provider can read (signatures, encrypted reasoning): found, kept, given back.

Providers put it under many names and at many depths; what the names have in common decides.
A message keeps it sealed under the key `opaque`, with the name of the maker: wire, provider and
model. Every wire takes the seal off before it sends a message, and uses what is in it only when it
is the maker itself. So a message of one provider is never sent damaged to another.
"""

import re
from collections.abc import Iterator

from app.providers.wire_json import (
    JsonObject,
    as_object,
    as_text,
    is_array,
    is_object,
    json_text,
    parsed_object,
)

_NAMES = re.compile(r"(?:^|_)(?:signature|opaque|encrypted|encrypted_content)$")
_HIDDEN_TYPES = ("encrypted", "redacted")
_MOST_LEVELS = 8
_KEY = "opaque"
_MARK = f'"{_KEY}":'


def opaque_in(value: object, levels: int = _MOST_LEVELS) -> Iterator[str]:
    """The opaque texts in a value, in order; for the parts of an answer that are no text."""
    if levels == 0:
        return
    if is_array(value):
        for entry in value:
            yield from opaque_in(entry, levels - 1)
    if is_object(value):
        is_hidden = any(word in as_text(value.get("type")) for word in _HIDDEN_TYPES)
        for name, inner in value.items():
            if not isinstance(inner, str):
                yield from opaque_in(inner, levels - 1)
            elif inner and (_NAMES.search(name) or (is_hidden and name == "data")):
                yield inner


def sealed(to_return: JsonObject, maker: str) -> str:
    """What must go back, with the name of whom it came from; empty where nothing must."""
    return json_text({"maker": maker, "parts": to_return}) if to_return else ""


def unsealed(message: dict[str, object], maker: str) -> JsonObject:
    """Take the seal off a stored message; what was in it, if it was this maker's.

    A signature is worth something to its own provider and model only; others refuse it.
    """
    seal = parsed_object(as_text(message.pop(_KEY, None))) or {}
    return as_object(seal.get("parts")) if seal.get("maker") == maker else {}


def is_sealed(message: str) -> bool:
    """Whether a stored message holds something opaque: asked of its text, which stays unread.

    Inside a JSON string the quotes would be escaped, so the text of a message is never mistaken.
    """
    return _MARK in message
