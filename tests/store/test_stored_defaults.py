"""Rows leave out what holds its default, so no default of a stored value ever changes."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from app.turn.events import Event
from app.turn.failures import ModelFailure
from app.turn.state import Turn

PINNED = Path(__file__).parents[1] / "data" / "stored-defaults.json"


def test_every_default_of_a_stored_value_is_what_it_was_when_rows_were_written() -> None:
    """A new field is added to the file; one that is in it stays, or old turns change silently."""
    assert dict(sorted(_defaults())) == json.loads(PINNED.read_text())


def _defaults() -> Iterator[tuple[str, str]]:
    seen: set[type] = set()
    _reach(Turn | Event | ModelFailure, seen)
    for kind in seen:
        for field in fields(kind):
            if (default := _default(field)) is not MISSING:
                yield f"{kind.__name__}.{field.name}", repr(default)


def _reach(hint: object, seen: set[type]) -> None:
    """All dataclasses that a value of this type may hold."""
    for part in get_args(hint):
        _reach(part, seen)
    if isinstance(hint, type) and is_dataclass(hint) and hint not in seen:
        seen.add(hint)
        for of_field in get_type_hints(hint).values():
            _reach(of_field, seen)


def _default(field: "Field[Any]") -> object:
    made = field.default_factory
    return field.default if made is MISSING else made()
