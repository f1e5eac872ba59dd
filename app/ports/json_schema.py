"""JSON Schemas of Python types, for tools' arguments and agents' outputs alike."""

import json
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import to_jsonable_python
from typing_extensions import override


def schema_of(adapter: TypeAdapter[Any]) -> str:
    """The schema as JSON text.

    Raises:
        PydanticUserError: no JSON Schema says what the type is.
    """
    schema = adapter.json_schema(schema_generator=_Schema)
    schema.pop("title", None)
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


class _Schema(GenerateJsonSchema):
    """Without the titles that repeat each name, and in the same words in every process."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 - declared so upstream
        "skipped-choice",
        "non-serializable-default",
    }

    @override
    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    @override
    def encode_default(self, dft: object) -> object:
        if isinstance(dft, (set, frozenset)):  # some releases write it as this process orders it
            return sorted(to_jsonable_python(dft), key=json.dumps)
        return super().encode_default(dft)
