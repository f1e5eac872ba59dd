"""How a caller names a model."""

from typing import Annotated

from pydantic import AfterValidator, Field

from app.routers.wire import Line


def _is_name(value: str) -> str:
    if not value.strip():
        message = "is blank"
        raise ValueError(message)
    return value


ModelName = Annotated[
    Line,
    AfterValidator(_is_name),
    Field(
        min_length=1,
        max_length=200,
        description="`provider/model`: called instead of the agent's own from here on.",
    ),
]
