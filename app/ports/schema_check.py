"""Values checked against a JSON Schema that is kept as text: forms, and whatever else is frozen.

The schema comes from an agent's declaration, the value from anybody. So a check reads nothing from
elsewhere (no `$ref` to another document), ends in a time that is linear in the value (patterns that
would need backtracking are refused when the schema is declared) and says nothing of the value.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeAlias, cast

from jsonschema_rs import (
    ReferencingError,
    RegexOptions,
    ValidationError,
    ValidationErrorKind,
    Validator,
    validator_for,
)

MAX_SCHEMA_BYTES = 64 * 1024
MAX_DEPTH = 64
"""Lists and objects within one another."""
MAX_VALUES = 10_000
"""Of all levels, keys not counted."""
MAX_PROBLEMS = 50

_NO_FIELD = "there is no such field"

Path: TypeAlias = tuple[str | int, ...]


class UnusableSchemaError(ValueError):
    """A JSON Schema cannot be used; the message says why, for whoever declares it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """What is wrong with one field; of the value itself it says nothing."""

    path: Path
    """Keys and indices from the outside in; the field need not be there. Empty: the value."""
    problem: str
    is_surplus: bool = False
    """Whether the field is one that the schema does not have."""

    @property
    def pointer(self) -> str:
        """The path as a JSON Pointer, such as `/address/zip`."""
        return "".join("/" + _escaped(str(step)) for step in self.path)


def schema_text(schema: object) -> str:
    """The schema as JSON text, in the order of its keys, once it is known to be usable.

    Raises:
        UnusableSchemaError: it is no JSON Schema of a known draft, needs another document, has a
            pattern that needs backtracking, or is too large.
    """
    if not isinstance(schema, Mapping):
        msg = f"a JSON Schema is an object, not {type(schema).__qualname__}"
        raise UnusableSchemaError(msg)
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"it cannot be written as JSON ({error})"
        raise UnusableSchemaError(msg) from error
    if size > MAX_SCHEMA_BYTES:
        msg = f"it has {size:,} bytes; {MAX_SCHEMA_BYTES:,} are allowed"
        raise UnusableSchemaError(msg)
    _checker(text)
    return text


def problems_in(schema: str, value: object) -> tuple[FieldProblem, ...]:
    """What is wrong with a JSON value, field by field; at most 50 problems, none when it fits.

    `format` is checked. A missing or surplus field is named itself, not the object it is about.

    Raises:
        UnusableSchemaError: `schema` does not come from `schema_text`.
    """
    checker = _checker(schema)
    beyond = _beyond_bounds(value)
    if beyond is not None:
        return (FieldProblem(path=(), problem=beyond),)
    try:
        found = checker.iter_errors(value)
    except (TypeError, ValueError) as error:  # what no JSON text can say, such as a set
        return (FieldProblem(path=(), problem=f"it is no JSON value ({error})"),)
    return tuple(islice(_problems(found), MAX_PROBLEMS))


@lru_cache(maxsize=256)
def _checker(schema: str) -> Validator:
    try:
        return validator_for(
            json.loads(schema),
            validate_formats=True,
            offline=True,
            pattern_options=RegexOptions(),
            mask="it",
        )
    except ValidationError as error:
        place = "/".join(map(str, error.instance_path))
        msg = f"{error.message} (at {place!r})" if place else error.message
        raise UnusableSchemaError(msg) from error
    except (ReferencingError, ValueError) as error:
        raise UnusableSchemaError(str(error)) from error


def _problems(found: Iterable[ValidationError]) -> Iterator[FieldProblem]:
    for error in found:
        path = tuple(error.instance_path)
        match error.kind:
            case ValidationErrorKind.Required(property=name):
                yield FieldProblem(path=(*path, name), problem="it is required")
            case (
                ValidationErrorKind.AdditionalProperties(unexpected=names)
                | ValidationErrorKind.UnevaluatedProperties(unexpected=names)
            ):
                for name in names:
                    yield FieldProblem(path=(*path, name), problem=_NO_FIELD, is_surplus=True)
            case (
                ValidationErrorKind.AnyOf(context=ways)
                | ValidationErrorKind.OneOfNotValid(context=ways)
            ):
                meant = _meant(ways, path)
                yield from _problems(meant) if meant else (_plain(error, path),)
            case _:
                yield _plain(error, path)


def _meant(ways: Sequence[Sequence[ValidationError]], path: Path) -> Sequence[ValidationError]:
    """The errors of the only alternative of the right type; an optional field has one, say."""
    right = [way for way in ways if not any(_is_wrong_type(error, path) for error in way)]
    return right[0] if len(right) == 1 else ()


def _is_wrong_type(error: ValidationError, path: Path) -> bool:
    is_type = isinstance(error.kind, ValidationErrorKind.Type | ValidationErrorKind.Constant)
    return is_type and tuple(error.instance_path) == path


def _plain(error: ValidationError, path: Path) -> FieldProblem:
    return FieldProblem(path=path, problem=error.message)


def _beyond_bounds(value: object) -> str | None:
    """Whether a value is too deep or too large to be looked at; without recursion itself."""
    level, values = [value], 0
    for _ in range(MAX_DEPTH + 1):
        values += len(level)
        if values > MAX_VALUES:
            return f"it has more than {MAX_VALUES:,} values"
        level = [inner for each in level for inner in _directly_inside(each)]
        if not level:
            return None
    return f"its lists and objects are nested more than {MAX_DEPTH} deep"


def _directly_inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[object, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
