"""What all wire models share: camelCase outside, closed input, no defaults invented on output."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Input(BaseModel):
    """Said by a caller: unknown fields are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True
    )


class Output(BaseModel):
    """Said to a caller."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, serialize_by_alias=True
    )


def is_absent(value: object) -> bool:
    """For `exclude_if`: a field that this kind of object does not have is left out."""
    return value is None


def _is_line(value: str) -> str:
    if any(character < " " or character == "\x7f" for character in value):
        message = "holds a control character"
        raise ValueError(message)
    return value


Line = Annotated[str, AfterValidator(_is_line)]
"""Text that is stored and shown as it is."""
ID_PATTERN = r"^[A-Za-z0-9_.:-]{1,128}$"
