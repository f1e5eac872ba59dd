"""A history that ends with an answer, put so that a provider takes it.

An answer that paused is to be gone on with by whoever gave it (Anthropic's `pause_turn`). Everybody
else refuses a history that ends with one; they get a word behind it, in the request alone.
"""

from collections.abc import Sequence

from app.ports import GO_ON
from app.providers.wire_json import parsed_object

_MARK = '"assistant"'
_ROLE_STANDS_WITHIN = 64
"""Characters from the start of a stored message."""


def to_be_answered(messages: Sequence[str]) -> Sequence[str]:
    """The messages, ending with something to answer."""
    return [*messages, GO_ON] if messages and is_answer(messages[-1]) else messages


def is_answer(message: str) -> bool:
    """Whether a stored message is one of the model's."""
    if _MARK not in message[:_ROLE_STANDS_WITHIN]:
        return False
    return (parsed_object(message) or {}).get("role") == "assistant"
