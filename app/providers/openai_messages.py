"""Stored messages as an OpenAI-compatible provider gets them.

They were stored in this wire's form and are copied, not read; only one with something opaque is
taken apart, to give its maker back what was its own and everybody else the rest.
"""

from app.providers.opaque import is_sealed, unsealed
from app.providers.wire_ids import FITTING_IDS, CallIds
from app.providers.wire_json import (
    as_array,
    as_object,
    as_text,
    json_text,
    parsed_object,
)


def as_sent(message: str, maker: str, call_ids: CallIds = "any") -> bytes:
    """The message as JSON, for the provider and model that `maker` names.

    Empty where all of it is for somebody else: an answer that has paused before it said anything.
    """
    fitting = FITTING_IDS[call_ids]
    body = parsed_object(message) if is_sealed(message) or fitting is not None else None
    if body is None:
        return message.encode("utf-8", "replace")
    sent = dict(body)
    returned = unsealed(sent, maker)
    calls = [as_object(call) for call in as_array(sent.get("tool_calls"))]
    extras = [as_object(extra) for extra in as_array(returned.get("calls"))]
    if len(calls) == len(extras):  # otherwise the calls were withheld, and their reasoning too
        sent |= as_object(returned.get("message"))
        calls = [{**call, **extra} for call, extra in zip(calls, extras, strict=True)]
    if not calls and sent.get("role") == "assistant" and not as_text(sent.get("content")).strip():
        return b""
    if fitting is not None:
        calls = [{**call, "id": fitting(as_text(call.get("id")))} for call in calls]
    if fitting is not None and "tool_call_id" in sent:
        sent["tool_call_id"] = fitting(as_text(sent["tool_call_id"]))
    if calls:
        sent["tool_calls"] = calls
    return json_text(sent).encode("utf-8", "replace")
