"""Finds what nobody but its provider can read: signatures, encrypted reasoning.

Providers put it under many names and at many depths; what the names have in common decides.
"""

import re
from collections.abc import Iterator

from app.providers.wire_json import as_text, is_array, is_object

_NAMES = re.compile(r"(?:^|_)(?:signature|opaque|encrypted|encrypted_content)$")
_HIDDEN_TYPES = ("encrypted", "redacted")
_MOST_LEVELS = 8


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
