"""Reasoning, wherever an OpenAI-compatible provider puts it, and what of it must go back.

A provider takes its own message back as it was; several refuse a round of tool results whose
message has lost its reasoning (DeepSeek, Kimi) or its signatures (Gemini, Claude behind a gateway).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.providers.opaque import opaque_in
from app.providers.think_tags import Part
from app.providers.wire_json import JsonObject, as_array, as_object, as_text, is_array, is_object

_TEXT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_DETAIL_FIELDS = ("reasoning_details", "thinking_blocks")
_FIELDS = frozenset({*_TEXT_FIELDS, *_DETAIL_FIELDS})
_DETAIL_TEXTS = ("text", "summary", "thinking")
_MOST_LEVELS = 8
_PLAIN_FIELDS = frozenset({"role", "tool_calls", "function_call", "refusal", *_TEXT_FIELDS})


def reasoning_in(part: JsonObject) -> str:
    """The reasoning of a delta or message; counted once when it comes in several fields."""
    if _FIELDS.isdisjoint(part):
        return ""
    for name in _TEXT_FIELDS:
        if text := as_text(part.get(name)):
            return text
    for name in _DETAIL_FIELDS:
        if text := "".join(_texts(entry) for entry in as_array(part.get(name))):
            return text
    return ""


def content_parts(part: JsonObject) -> Iterator[Part]:
    """Text and reasoning of the content field: a string, or a list of parts."""
    content = part.get("content")
    if isinstance(content, str):
        yield "text", content
    for entry in as_array(content):
        piece = as_object(entry)
        kind = as_text(piece.get("type"))
        if "thinking" in piece or "reason" in kind or "think" in kind:
            yield "reasoning", _texts(piece)
        else:
            yield "text", as_text(piece.get("text"))


@dataclass(slots=True)
class ReasoningParts:
    """What of an answer's reasoning must go back with it, put together from its deltas."""

    signatures: list[str] = field(default_factory=list[str])
    _texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _details: dict[str, list[dict[str, object]]] = field(
        default_factory=dict[str, list[dict[str, object]]]
    )
    _others: dict[str, object] = field(default_factory=dict[str, object])

    def take(self, part: JsonObject) -> None:
        """Take what a delta or message has of it."""
        for name, value in part.items():
            if name in _TEXT_FIELDS and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif value and name not in _PLAIN_FIELDS and not _is_plain_text(name, value):
                self._take_other(name, value)

    def to_return(self, *, has_calls: bool) -> Mapping[str, object]:
        """The fields to add to the message; the reasoning itself only where calls follow it."""
        returned: dict[str, object] = {**self._details, **self._others}
        if has_calls and not self._details:
            returned |= {name: "".join(pieces) for name, pieces in self._texts.items()}
        return returned

    def _take_other(self, name: str, value: object) -> None:
        found = list(opaque_in({name: value}))
        self.signatures += [sign for sign in found if sign not in self.signatures]
        if name in _DETAIL_FIELDS:
            for entry in as_array(value):
                _merge(self._details.setdefault(name, []), as_object(entry))
        elif found and name != "content":
            self._others[name] = value


def _is_plain_text(name: str, value: object) -> bool:
    """The content of nearly every delta, which is not looked into."""
    return name == "content" and isinstance(value, str)


def _merge(details: list[dict[str, object]], new: JsonObject) -> None:
    """Add a detail, or lengthen the last one when this is more of it."""
    last = details[-1] if details else None
    if last is None or any(last.get(key) != new.get(key) for key in ("type", "index")):
        details.append(dict(new))
        return
    for key, value in new.items():
        if key in _DETAIL_TEXTS and isinstance(value, str):
            last[key] = as_text(last.get(key)) + value
        elif value is not None:
            last[key] = value


def _texts(value: object, levels: int = _MOST_LEVELS) -> str:
    """All the text in a piece of reasoning, whatever it is wrapped in."""
    if isinstance(value, str):
        return value
    if is_array(value) and levels:
        return "".join(_texts(entry, levels - 1) for entry in value)
    if is_object(value) and levels:
        inner = (_texts(value.get(key), levels - 1) for key in _DETAIL_TEXTS)
        return next((text for text in inner if text), "")
    return ""


def is_thought(part: JsonObject) -> bool:
    """Whether the content is reasoning, which Gemini says beside it."""
    if "extra_content" not in part:
        return False
    google = as_object(as_object(part.get("extra_content")).get("google"))
    return google.get("thought") is True
