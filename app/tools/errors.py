"""What a tool may raise, and what declaring one may raise."""

from typing import NoReturn


class ToolDeclarationError(ValueError):
    """A function cannot be made a tool; the message says what to change."""


class NotDone(Exception):  # noqa: N818 - read at the place of raising: "raise NotDone"
    """Raised by a tool that has done nothing, so that nobody need fear it did half.

    The model is told so, with the reason, and the call counts as not started.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InvalidArgumentsError(ValueError):
    """The model's arguments do not fit the tool; the text is written for the model."""


def refuse_tool(name: str, why: str) -> NoReturn:
    """Say of the tool of that name why it cannot be one, and what to do.

    Raises:
        ToolDeclarationError: always.
    """
    msg = f"tool {name!r} {why}"
    raise ToolDeclarationError(msg)
