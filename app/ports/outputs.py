"""What a model is told of a call: bounded, storable text, whatever was said or raised."""

import json
from typing import Literal, TypeAlias

from app.ports.suspensions import (
    Ask,
    NeedsApproval,
    NeedsInput,
    Suspension,
    bounded,
    suspension_in,
)
from app.ports.tool_context import ToolContext
from app.ports.tool_output import NotDone, ToolOutput
from app.turn.transcript import Outcome
from app.turn.waits import ApprovalNeeded, InputNeeded, fingerprint_of

MAX_CONTENT_BYTES = 64 * 1024
"""A longer content (in UTF-8, the marker included) is cut."""
MAX_ERROR_CHARACTERS = 2_000

_Outcome: TypeAlias = Literal[Outcome.COMPLETED, Outcome.ERROR, Outcome.NOT_STARTED]
_MARKER = "\n[cut here: {cut} of {total} bytes left out]"


def failed(error: BaseException, context: ToolContext) -> ToolOutput:
    """The error's type and message for the model, without a traceback.

    What has the turn wait, however it was wrapped, comes out as what is asked for (case 143);
    `NotDone` becomes `NOT_STARTED`, everything else `ERROR`.
    """
    if (suspension := suspension_in(error)) is not None:
        return _asking(suspension, context)
    if isinstance(error, NotDone):
        said = _bounded(f"Nothing was done: {error.reason}")
        return output(Outcome.NOT_STARTED, said)
    return refused(said_by(error))


def _asking(suspension: Suspension, context: ToolContext) -> ToolOutput:
    match suspension:
        case Ask(question=question):
            asked = storable(bounded(question) or "")
            return ToolOutput(outcome=Outcome.COMPLETED, content="", question=asked)
        case NeedsApproval(content=content, message=message):
            return _needing(
                ApprovalNeeded(
                    content=content,
                    fingerprint=fingerprint_of(context.tool_name, content),
                    message=_storable_or_none(message),
                )
            )
        case NeedsInput(form_key=key, message=message) if key in context.forms:
            return _needing(context.forms[key].needed(_storable_or_none(message)))
        case _:  # a form that the agent does not have is the tool's error (T43)
            return refused(f"the agent does not have what the tool asks for: {suspension}")


def suspension_of(output: ToolOutput) -> Suspension | None:
    """What a tool has raised to have its turn wait, once more."""
    match output:
        case ToolOutput(question=str(question)):
            return Ask(question)
        case ToolOutput(needs=ApprovalNeeded(content=content, message=message)):
            return NeedsApproval(json.loads(content), message=message)
        case ToolOutput(needs=InputNeeded(form_key=str(key), message=message)):
            return NeedsInput(key, message=message)
        case _:
            return None


def _needing(needs: ApprovalNeeded | InputNeeded) -> ToolOutput:
    return ToolOutput(outcome=Outcome.COMPLETED, content="", needs=needs)


def _storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)


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
