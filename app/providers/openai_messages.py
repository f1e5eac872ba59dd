"""Stored messages as an OpenAI-compatible provider gets them.

They were stored in this wire's form and are copied, not read; only one with something opaque is
taken apart, to give its maker back what was its own and everybody else the rest.
"""

from app.providers.opaque import is_sealed, unsealed
from app.providers.wire_json import as_array, as_object, json_text, parsed_object


def as_sent(message: str, maker: str) -> bytes:
    """The message as JSON, for the provider and model that `maker` names."""
    body = parsed_object(message) if is_sealed(message) else None
    if body is None:
        return message.encode("utf-8", "replace")
    sent = dict(body)
    returned = unsealed(sent, maker)
    calls = [as_object(call) for call in as_array(sent.get("tool_calls"))]
    extras = [as_object(extra) for extra in as_array(returned.get("calls"))]
    if len(calls) == len(extras):  # otherwise the calls were withheld, and their reasoning too
        sent |= as_object(returned.get("message"))
        if calls:
            pairs = zip(calls, extras, strict=True)
            sent["tool_calls"] = [{**call, **extra} for call, extra in pairs]
    return json_text(sent).encode("utf-8", "replace")
