"""Values of the core as JSON text. A field that holds its default is left out, at every depth.

Most fields of most values do: what is not written costs nothing in the log, and whoever reads the
row sees what there is to say. Readers fill in the default (`app.store.turn_codec`), as they do for
rows that were written before a field was there; so a default never changes its meaning.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from datetime import timedelta
from functools import cache
from operator import attrgetter
from typing import Any, Literal, get_args, get_origin

import orjson
from pydantic import TypeAdapter

_SPAN = TypeAdapter(timedelta)
_ALWAYS = object()
"""The default of what has none: nothing that a field holds."""


def written(value: object) -> bytes:
    """The JSON text of a value, in UTF-8."""
    return orjson.dumps(
        value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_UTC_Z
    )


def said_by(value: object) -> dict[str, object]:
    """The fields of a dataclass that hold anything but their defaults, as they are."""
    form = _form(type(value))  # type: ignore[arg-type]  # mypy: its instances could be unhashable
    held = zip(form.names, form.values(value), form.defaults, strict=True)
    return {name: it for name, it, default in held if it is not default and it != default}


def _plain(value: object) -> object:
    return _SPAN.dump_python(value, mode="json") if isinstance(value, timedelta) else said_by(value)


@dataclass(frozen=True, slots=True)
class _Form:
    names: tuple[str, ...]
    values: Callable[[object], tuple[object, ...]]
    defaults: tuple[object, ...]


@cache
def _form(kind: type[Any]) -> _Form:
    names = tuple(field.name for field in fields(kind))
    defaults = tuple(_default(field) for field in fields(kind))
    return _Form(names, _values_of(names), defaults)


def _values_of(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    values = attrgetter(*names)
    if len(names) == 1:
        return lambda value: (values(value),)  # which would give the value alone
    return values


def _default(field: "Field[Any]") -> object:
    if get_origin(field.type) is Literal and len(get_args(field.type)) == 1:
        return _ALWAYS  # it tells the members of a union apart
    if field.default is not MISSING:
        return field.default
    return _ALWAYS if field.default_factory is MISSING else field.default_factory()
