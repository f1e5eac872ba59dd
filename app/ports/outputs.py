"""What a model is told of a call: bounded, storable text, whatever was said or raised."""

from typing import Literal, TypeAlias

from app.ports.questions import question_in
from app.ports.tool_output import NotDone, ToolOutput
from app.turn.transcript import Outcome

MAX_CONTENT_BYTES = 64 * 1024
"""A longer content (in UTF-8, the marker included) is cut."""
MAX_ERROR_CHARACTERS = 2_000

_Outcome: TypeAlias = Literal[Outcome.COMPLETED, Outcome.ERROR, Outcome.NOT_STARTED]
_MARKER = "\n[cut here: {cut} of {total} bytes left out]"


def failed(error: BaseException) -> ToolOutput:
    """The error's type and message for the model, without a traceback.

    `Ask`, however it was wrapped, becomes a question; `NotDone` becomes `NOT_STARTED`, everything
    else `ERROR`.
    """
    if (question := question_in(error)) is not None:
        return ToolOutput(outcome=Outcome.COMPLETED, content="", question=storable(question))
    if isinstance(error, NotDone):
        said = _bounded(f"Nothing was done: {error.reason}")
        return output(Outcome.NOT_STARTED, said)
    return refused(said_by(error))


def refused(reason: str) -> ToolOutput:
    """An `ERROR` that says the reason, in at most `MAX_ERROR_CHARACTERS`."""
    return output(Outcome.ERROR, _bounded(reason))


def said_by(error: BaseException) -> str:
    """`Type: message`, or the type alone where there is no message or it cannot be read."""
    name = type(error).__qualname__
    try:
        message = str(error).strip()
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the error itself
        message = ""
    return f"{name}: {message}" if message else name


def output(outcome: _Outcome, content: str) -> ToolOutput:
    """The output, its content as it can be stored."""
    return ToolOutput(outcome=outcome, content=_cut(storable(content)))


def _bounded(text: str) -> str:
    if len(text) <= MAX_ERROR_CHARACTERS:
        return text
    return text[: MAX_ERROR_CHARACTERS - 1] + "…"


def storable(text: str) -> str:
    """Halves of surrogate pairs, which no UTF-8 can hold, joined or replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _cut(text: str) -> str:
    encoded = text.encode()
    total = len(encoded)
    if total <= MAX_CONTENT_BYTES:
        return text
    room = MAX_CONTENT_BYTES - len(_MARKER.format(cut=total, total=total))
    kept = encoded[:room].decode(errors="ignore")
    return kept + _MARKER.format(cut=total - len(kept.encode()), total=total)
