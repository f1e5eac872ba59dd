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


def _is_text(value: str) -> str:
    """Halves of a character pair are no text: no encoding takes them."""
    if any("\ud800" <= character <= "\udfff" for character in value):
        message = "holds half of a surrogate pair"
        raise ValueError(message)
    return value


Text = Annotated[str, AfterValidator(_is_text)]
ID_PATTERN = r"^[A-Za-z0-9_.:-]{1,128}$"
