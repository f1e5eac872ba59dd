"""What a declaration must keep to about answers that are cut off, and requests that are refused."""

from collections.abc import Iterable
from typing import cast, get_args

from app.agents.rules import refuse
from app.turn.agent import LeftOut, OnInvalidRequest, OnTruncated, PartialOutput

_MOST_CONTINUATIONS = 100
_CHOICES = {
    "partial_output": get_args(PartialOutput),
    "on_truncated": get_args(OnTruncated),
    "on_invalid_request": get_args(OnInvalidRequest),
}


def check_choice(part: str, value: object, where: str) -> None:
    """Of the options that are one of two words."""
    words = _CHOICES[part]
    if value not in words:
        refuse(where, f"{part} must be {' or '.join(map(repr, words))}", value)


def check_max_continuations(value: object, where: str) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not (is_number and 1 <= cast("int", value) <= _MOST_CONTINUATIONS):
        rule = f"max_continuations must be a whole number from 1 to {_MOST_CONTINUATIONS}"
        refuse(where, rule, value)


def checked_leave_out(value: object, where: str) -> tuple[LeftOut, ...]:
    """The kinds of messages as a tuple, each once and in the order in which we name them."""
    known = get_args(LeftOut)
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        refuse(where, "leave_out must be a list of kinds of messages", value)
    kinds = list(cast("Iterable[object]", value))
    for kind in kinds:
        if kind not in known:
            refuse(where, f"leave_out may name {' and '.join(map(repr, known))}", kind)
    return tuple(kind for kind in known if kind in kinds)
