"""Messages as the `messages` table keeps them.

`body` is the message in the shape that chat requests carry, so that a request is put together from
stored text without decoding anything. `meta` holds what a request does not carry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import orjson

from app.turn.ids import CallId, FailureId, MessageId
from app.turn.transcript import (
    AssistantMessage,
    ClosingMessage,
    ContentPart,
    ImagePart,
    Message,
    MessageError,
    NoticeMessage,
    Outcome,
    QuestionMessage,
    StopReason,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedMessage:
    role: str
    body: str
    meta: str | None = None
    message_id: str | None = None
    call_id: str | None = None


def encode(message: Message) -> EncodedMessage:
    match message:
        case UserMessage():
            body = {"role": "user", "content": _content(message.content)}
            return EncodedMessage(role="user", body=_json(body), message_id=message.message_id)
        case AssistantMessage():
            return EncodedMessage(
                role=_role(message), body=_json(_said(message)), meta=_meta(message)
            )
        case ToolResult():
            body = {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
            meta = {"toolName": message.tool_name, "outcome": message.outcome}
            return EncodedMessage(
                role="tool", body=_json(body), meta=_json(meta), call_id=message.call_id
            )
        case ClosingMessage(text=text):
            return EncodedMessage(
                role="closing", body=_json({"role": "assistant", "content": text})
            )
        case NoticeMessage(text=text, cause=cause):
            body = {"role": "user", "content": text}
            return EncodedMessage(role="notice", body=_json(body), meta=_json({"cause": cause}))
        case QuestionMessage(text=text):
            return EncodedMessage(
                role="question", body=_json({"role": "assistant", "content": text})
            )
        case SystemMessage(text=text):
            return EncodedMessage(role="system", body=_json({"role": "system", "content": text}))
    assert_never(message)


def decode(stored: EncodedMessage) -> Message:
    """The message that was encoded.

    Raises:
        ValueError: for a role this version does not know; nothing is guessed.
    """
    body: dict[str, Any] = orjson.loads(stored.body)
    meta: dict[str, Any] = orjson.loads(stored.meta) if stored.meta else {}
    match stored.role:
        case "user":
            message_id = MessageId(stored.message_id or "")
            return UserMessage(message_id=message_id, content=_parts(body["content"]))
        case "assistant" | "partial" | "refused" | "paused":
            return _assistant(body, meta)
        case "tool":
            return ToolResult(
                call_id=CallId(body["tool_call_id"]),
                tool_name=meta["toolName"],
                outcome=Outcome(meta["outcome"]),
                content=body["content"],
            )
        case "closing":
            return ClosingMessage(text=body["content"])
        case "notice":
            return NoticeMessage(text=body["content"], cause=meta["cause"])
        case "question":
            return QuestionMessage(text=body["content"])
        case "system":
            return SystemMessage(text=body["content"])
        case unknown:
            message = f"a stored message has the unknown role {unknown!r}"
            raise ValueError(message)


def _role(message: AssistantMessage) -> str:
    """Answers that a request may carry in another way have roles of their own in the table."""
    return "assistant" if message.tool_calls else _ROLES.get(message.stop_reason, "assistant")


_ROLES: Mapping[StopReason, str] = {
    StopReason.INTERRUPTED: "partial",
    StopReason.REFUSAL: "refused",
    StopReason.PAUSED: "paused",
}


def _content(parts: tuple[ContentPart, ...]) -> str | list[dict[str, Any]]:
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return [_part(part) for part in parts]


def _part(part: ContentPart) -> dict[str, Any]:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart(url=url):
            return {"type": "image_url", "image_url": {"url": url}}


def _parts(content: str | list[dict[str, Any]]) -> tuple[ContentPart, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    return tuple(
        TextPart(text=part["text"])
        if part["type"] == "text"
        else ImagePart(url=part["image_url"]["url"])
        for part in content
    )


def _said(message: AssistantMessage) -> dict[str, Any]:
    """The message, with `opaque` as a key that every wire takes out before it sends the rest."""
    opaque = {"opaque": message.opaque} if message.opaque else {}
    if not message.tool_calls:
        return {"role": "assistant", "content": message.text, **opaque}
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.tool_name, "arguments": call.arguments},
        }
        for call in message.tool_calls
    ]
    # An empty text block beside calls is refused by strict providers; null is what they expect.
    text = message.text if message.text.strip() else None
    return {"role": "assistant", "content": text, "tool_calls": calls, **opaque}


def _meta(message: AssistantMessage) -> str:
    problems = {
        call.call_id: call.problem for call in message.tool_calls if call.problem is not None
    }
    meta = {
        "stopReason": message.stop_reason,
        "reasoning": message.reasoning,
        "problems": problems,
        "error": None if message.error is None else _error(message.error),
    }
    return _json({key: value for key, value in meta.items() if value})


def _error(error: MessageError) -> dict[str, Any]:
    written = {"reason": error.reason, "message": error.message, "failureId": error.failure_id}
    return {key: value for key, value in written.items() if value is not None}


def _read_error(error: dict[str, Any] | None) -> MessageError | None:
    if error is None:
        return None
    failure_id = error.get("failureId")
    return MessageError(
        reason=error["reason"],
        message=error["message"],
        failure_id=None if failure_id is None else FailureId(failure_id),
    )


def _assistant(body: dict[str, Any], meta: dict[str, Any]) -> AssistantMessage:
    problems = meta.get("problems", {})
    return AssistantMessage(
        text=body["content"] or "",
        tool_calls=tuple(
            ToolCall(
                call_id=CallId(call["id"]),
                tool_name=call["function"]["name"],
                arguments=call["function"]["arguments"],
                problem=problems.get(call["id"]),
            )
            for call in body.get("tool_calls", ())
        ),
        stop_reason=StopReason(meta["stopReason"]),
        reasoning=meta.get("reasoning", ""),
        opaque=body.get("opaque", ""),
        error=_read_error(meta.get("error")),
    )


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
