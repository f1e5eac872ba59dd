"""What a tool may raise, and what declaring one may raise."""

from typing import NoReturn

from app.ports import NotDone

__all__ = ["InvalidArgumentsError", "NotDone", "ToolDeclarationError", "refuse_tool"]


class ToolDeclarationError(ValueError):
    """A function cannot be made a tool; the message says what to change."""


class InvalidArgumentsError(ValueError):
    """The model's arguments do not fit the tool; the text is written for the model."""


def refuse_tool(name: str, why: str) -> NoReturn:
    """Say of the tool of that name why it cannot be one, and what to do.

    Raises:
        ToolDeclarationError: always.
    """
    msg = f"tool {name!r} {why}"
    raise ToolDeclarationError(msg)
