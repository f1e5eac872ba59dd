"""What code raises to have its turn wait for somebody, and how it is found again.

A suspension may be wrapped in other exceptions on its way: the innermost one counts (case 143).
"""

import json
from dataclasses import fields, is_dataclass
from typing import cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from app.turn.causes import innermost

MAX_QUESTION_CHARACTERS = 8_000
"""A longer question or message is cut."""
MAX_APPROVAL_BYTES = 64 * 1024
"""Of what is to be approved, as canonical JSON in UTF-8."""


class Suspension(Exception):  # noqa: N818 - read at the place of raising: "raise Ask"
    """Raised to have the turn wait: whoever raises it has done nothing yet."""


class Ask(Suspension):
    """Raised by a tool or a hook to ask the user: the turn waits, and what they say goes on.

    Raises:
        ValueError: the question says nothing.
    """

    def __init__(self, question: str) -> None:
        if not question.strip():
            message = "a question needs words"
            raise ValueError(message)
        super().__init__(question)
        self.question = question


class NeedsApproval(Suspension):
    """Raised by a tool to have somebody approve what it is about to do (AF-92).

    Once that very content is approved the tool is entered again from the top. It must ask by
    `ToolContext.require_approval`, or look whether `ToolContext.is_approved`: to ask again for what
    is approved would go on for ever, and fails the turn (case 97).

    Raises:
        ValueError: the content is no JSON, or has more than 64 KiB.
    """

    def __init__(self, content: object, *, message: str | None = None) -> None:
        self.content = canonical_json(content)
        """The content as it is shown and approved: the same for the same values."""
        self.message = bounded(message)
        super().__init__(self.message or "an approval is needed")


class NeedsInput(Suspension):
    """Raised by a tool to have the user fill in a form of its agent's.

    With the values the tool is entered again from the top (AF-100).
    """

    def __init__(self, form_key: str, *, message: str | None = None) -> None:
        self.form_key = form_key
        self.message = bounded(message)
        super().__init__(self.message or f"form {form_key!r} is to be filled in")


def suspension_in(error: BaseException) -> Suspension | None:
    """What an exception came from that has the turn wait, if it came from anything of the kind."""
    return innermost(error, Suspension)


def question_in(error: BaseException) -> str | None:
    """What an exception asks the user, by an `Ask` it came from; at most 8,000 characters."""
    asked = suspension_in(error)
    return bounded(asked.question) if isinstance(asked, Ask) else None


def canonical_json(content: object) -> str:
    """JSON text that is the same whatever the order of keys (case 98), in every process.

    Models, dataclasses, dates, decimals and sets are written as their JSON, a set in order.

    Raises:
        ValueError: no JSON text can say it, or it has more than 64 KiB.
    """
    try:
        text = _written(content)
        size = len(text.encode())
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        message = f"what is to be approved must be JSON ({error})"
        raise ValueError(message) from error
    if size > MAX_APPROVAL_BYTES:
        message = f"what is to be approved has {size:,} bytes; {MAX_APPROVAL_BYTES:,} are allowed"
        raise ValueError(message)
    return text


def _written(content: object) -> str:
    return json.dumps(
        content,
        ensure_ascii=False,
        allow_nan=False,
        sort_keys=True,
        separators=(",", ":"),
        default=_plain,
    )


def _plain(value: object) -> object:
    """Something that is no JSON by itself, as what is."""
    if isinstance(value, set | frozenset):  # a process iterates over one in an order of its own
        return [json.loads(text) for text in sorted(map(_written, cast("set[object]", value)))]
    if isinstance(value, BaseModel):
        return value.model_dump()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return to_jsonable_python(value)


def bounded(message: str | None) -> str | None:
    """At most 8,000 characters of a message to a person; `None` where it says nothing."""
    if message is None or not message.strip():
        return None
    if len(message) <= MAX_QUESTION_CHARACTERS:
        return message
    return message[: MAX_QUESTION_CHARACTERS - 1] + "…"
