"""What a model is told of a tool's result."""

from pydantic_core import to_json

from app.ports import ToolOutput
from app.ports.outputs import (
    MAX_CONTENT_BYTES,
    MAX_ERROR_CHARACTERS,
    failed,
    output,
    refused,
    said_by,
)
from app.turn.transcript import Outcome

__all__ = [
    "MAX_CONTENT_BYTES",
    "MAX_ERROR_CHARACTERS",
    "completed",
    "failed",
    "refused",
    "said_by",
]


def completed(result: object) -> ToolOutput:
    """A string as it is, anything else as JSON; an `ERROR` when no JSON can say it."""
    if isinstance(result, str):
        return output(Outcome.COMPLETED, str.__str__(result))
    try:
        content = to_json(result, inf_nan_mode="strings").decode()
    except Exception as error:  # noqa: BLE001 - a result may bring its own serialiser
        return _unwritable(result, error)
    return output(Outcome.COMPLETED, content)


def _unwritable(result: object, error: Exception) -> ToolOutput:
    kind = type(result).__qualname__
    return refused(
        f"The tool ran to its end, but its result ({kind}) cannot be written as JSON "
        f"({said_by(error)})"
    )
