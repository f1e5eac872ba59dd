"""Output types: what a final answer must be, told as a JSON Schema and checked by pydantic."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import ErrorDetails, SchemaError

from app.ports.json_schema import schema_of
from app.turn.inputs import InvalidOutput, ValidOutput

MAX_PROBLEM_CHARACTERS = 2_000
MAX_DEPTH = 64
"""Lists and objects within one another; JSON writers give up somewhere above."""

_NO_TYPE = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError)
_FENCED = re.compile(r"^```(?:json)?[ \t]*\n(.*?)\n?^```[ \t]*$", re.DOTALL | re.MULTILINE)


class NoOutputTypeError(TypeError):
    """A type cannot be an output type; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputType:
    """A declared output type; implements `app.ports.OutputReader`."""

    adapter: TypeAdapter[Any]
    schema: str
    """Its JSON Schema, as JSON text; the same in every process."""

    def read(self, text: str) -> ValidOutput | InvalidOutput:
        """The value that an answer is, or what is wrong with it, written for the model.

        The answer is JSON, or holds it as its only fenced block. What comes back is the validated
        value, defaults included. Nothing is raised, whatever the type's validators do.
        """
        written = _unfenced(text)
        try:
            _require_json(written)
            value = self.adapter.validate_json(written)
            return ValidOutput(value=self._written(value))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            return _invalid("".join(map(_line, problems)).lstrip("\n"))
        except Exception as error:  # noqa: BLE001 - a validator of the agent's own raises anything
            return _invalid(_said_by(error))

    def _written(self, value: object) -> str:
        text = self.adapter.dump_json(value, by_alias=True).decode()
        _require_shallow(json.loads(text, parse_int=_within_64_bits), MAX_DEPTH)
        return text


def output_type(declared: object) -> OutputType:
    """The output type that a user declared: whatever pydantic can validate from JSON.

    Raises:
        NoOutputTypeError: it cannot be validated, or no JSON Schema says what it is.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", declared))
        return OutputType(adapter=adapter, schema=schema_of(adapter))
    except _NO_TYPE as error:
        raise NoOutputTypeError(str(error).splitlines()[0]) from error


def _unfenced(text: str) -> str:
    """The only fenced block of an answer that has one, else the answer."""
    blocks = _FENCED.findall(text)
    return blocks[0] if len(blocks) == 1 and not _is_json(text) else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _require_json(text: str) -> None:
    """Refuse what only lenient readers take: NaN, numbers beyond all bounds, a key given twice."""
    try:
        json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        msg = f"It is not JSON: {error}"
        raise ValueError(msg) from error
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        msg = "An object names one key twice."
        raise ValueError(msg)
    return found


def _no_number(name: str) -> NoReturn:
    msg = f"{name} is no JSON."
    raise ValueError(msg)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


def _within_64_bits(digits: str) -> int:
    """Larger numbers come out of many JSON readers as other numbers."""
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        msg = f"The number {digits[:40]} is too large."
        raise ValueError(msg)
    return number


def _require_shallow(value: object, levels: int) -> None:
    if not isinstance(value, (dict, list)):
        return
    if levels == 0:
        raise ValueError(_TOO_DEEP)
    within = cast("dict[str, object] | list[object]", value)
    for each in within.values() if isinstance(within, dict) else within:
        _require_shallow(each, levels - 1)


_TOO_DEEP = f"Its lists and objects are nested more than {MAX_DEPTH} deep."


def _line(problem: ErrorDetails) -> str:
    place = ".".join(map(str, problem["loc"])) or "the value"
    return f"\n- {place}: {problem['msg']}"


def _said_by(error: Exception) -> str:
    try:
        return str(error).strip() or type(error).__qualname__
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the error itself
        return type(error).__qualname__


def _invalid(problem: str) -> InvalidOutput:
    storable = problem.encode("utf-8", "replace").decode()
    if len(storable) > MAX_PROBLEM_CHARACTERS:
        storable = storable[: MAX_PROBLEM_CHARACTERS - 1] + "…"
    return InvalidOutput(problem=storable)
