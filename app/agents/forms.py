"""Forms as their user writes them down: for `request_user_input`, and for tools that need one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.errors import (
    PydanticSchemaGenerationError,
    PydanticUndefinedAnnotation,
    PydanticUserError,
)
from pydantic_core import SchemaError

from app.agents import rules
from app.ports import FrozenForm
from app.ports.json_schema import schema_of
from app.ports.schema_check import UnusableSchemaError, schema_text

_NO_TYPE = (
    PydanticUserError,
    PydanticSchemaGenerationError,
    PydanticUndefinedAnnotation,
    SchemaError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a user is asked to fill in.

    Raises:
        AgentDeclarationError: a part is missing, of the wrong kind or out of its range.
    """

    key: str
    """1 to 128 of A-Z, a-z, 0-9, `_`, `.`, `:` and `-`; an agent has it once."""
    schema: object
    """A JSON Schema of an object (`"type": "object"`), as a dictionary, or a pydantic model.

    It may not name other documents, nor have patterns that need backtracking; 64 KiB at most.
    """
    title: str | None = None
    """1 to 200 characters."""
    frozen: FrozenForm = field(init=False, repr=False, compare=False)
    """The form as waits keep it."""

    def __post_init__(self) -> None:
        where = f"form {self.key!r:.200}"
        rules.check_name("key", self.key, where)
        rules.check_title(self.title, where)
        text = _text(self.schema, where)
        object.__setattr__(self, "frozen", FrozenForm(key=self.key, title=self.title, schema=text))


def _text(declared: object, where: str) -> str:
    try:
        text = schema_text(_schema(declared, where))
    except UnusableSchemaError as error:
        rules.refuse(where, f"its schema cannot be used: {error}")
    if json.loads(text).get("type") != "object":
        rules.refuse(where, 'its schema must say "type": "object" at its top')
    return text


def _schema(declared: object, where: str) -> object:
    if isinstance(declared, Mapping):
        return cast("Mapping[str, object]", declared)
    try:
        return json.loads(schema_of(TypeAdapter(cast("Any", declared))))
    except _NO_TYPE as error:
        reason = str(error).splitlines()[0]
        rules.refuse(where, f"schema must be a JSON Schema or a pydantic model ({reason})")
