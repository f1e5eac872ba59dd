"""Whether a provider that checks everything would take this history; an oracle for tests.

The rules are those real providers refuse a request for: every tool call is answered directly
behind the message that asked for it, in the order of the calls, every result belongs to such a
call, ids are not repeated, nothing is empty, nothing is unknown.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NoReturn

from app.providers.wire_json import (
    as_array,
    as_object,
    as_text,
    has_surrogate,
    is_array,
    is_object,
)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "system": frozenset({"role", "content", "name"}),
        "developer": frozenset({"role", "content", "name"}),
        "user": frozenset({"role", "content", "name"}),
        "assistant": frozenset(
            {"role", "content", "tool_calls", "name", "refusal", "reasoning_content"}
        ),
        "tool": frozenset({"role", "content", "tool_call_id"}),
    }
)
_PART_KEYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"text": frozenset({"type", "text"}), "image_url": frozenset({"type", "image_url"})}
)


class _Malformed(Exception):  # noqa: N818 - never leaves this module
    """The history has a fault, which is the text of this exception."""


def check_history(messages: object) -> str | None:
    """The first fault of a history, naming the message, or `None` when there is none.

    `messages` is the parsed list of OpenAI chat messages, the system message included.
    """
    if not is_array(messages) or not messages:
        return "messages: a non-empty array is needed"
    history = _History()
    try:
        for message in messages:
            history.take(message)
        history.end()
    except _Malformed as fault:
        return f"messages[{history.count}]: {fault}"
    return None


@dataclass(slots=True)
class _History:
    """The checker's memory: which calls wait for results, and which ids were used."""

    open_calls: list[str] = field(default_factory=list[str])
    used_ids: set[str] = field(default_factory=set[str])
    count: int = 0
    last_role: str = ""

    def take(self, message: object) -> None:
        if not is_object(message):
            _fault("a message is an object")
        role = as_text(message.get("role"))
        self._check_keys(role, message)
        self._check_place(role)
        match role:
            case "assistant":
                self._take_answer(message)
            case "tool":
                self._take_result(message)
            case _:
                _check_content(message.get("content"))
        self.count += 1
        self.last_role = role

    def end(self) -> None:
        if self.open_calls:
            _fault(f"no result for the tool call {self.open_calls[0]!r}")
        if self.last_role not in {"user", "tool"}:
            _fault("the history must end with a user message or a tool result")

    def _check_keys(self, role: str, message: Mapping[str, object]) -> None:
        if role not in _KEYS:
            _fault(f"unknown role {role!r}")
        unknown = sorted(set(message) - _KEYS[role])
        if unknown:
            _fault(f"unknown key {unknown[0]!r} in a message of role {role!r}")
        if "content" not in message:
            _fault("content is missing")

    def _check_place(self, role: str) -> None:
        if role in {"system", "developer"} and self.count:
            _fault("a second system message, or one that is not the first message")
        if role != "tool" and self.open_calls:
            _fault(f"the tool call {self.open_calls[0]!r} has no result directly behind it")

    def _take_answer(self, message: Mapping[str, object]) -> None:
        calls = message.get("tool_calls")
        if "tool_calls" in message and not (is_array(calls) and calls):
            _fault("tool_calls must be a non-empty array")
        if "reasoning_content" in message:
            self._check_reasoning(message["reasoning_content"], calls)
        if message.get("content") is not None or not calls:
            _check_content(message.get("content"), may_be_empty=bool(calls))
        for call in as_array(calls):
            self.open_calls.append(self._checked_call(as_object(call)))

    def _check_reasoning(self, reasoning: object, calls: object) -> None:
        """It comes back beside the calls it led to, and nowhere else."""
        if not calls:
            _fault("reasoning_content goes back with tool calls only")
        _check_text(reasoning, may_be_empty=False)

    def _checked_call(self, call: Mapping[str, object]) -> str:
        call_id = as_text(call.get("id"))
        function = as_object(call.get("function"))
        if set(call) != {"id", "type", "function"} or call.get("type") != "function":
            _fault("a tool call has exactly id, type 'function' and function")
        if set(function) != {"name", "arguments"} or not _is_name(function.get("name")):
            _fault(f"the function of tool call {call_id!r} needs exactly a name and arguments")
        if not call_id or call_id in self.used_ids:
            _fault(f"the tool call id {call_id!r} is empty or repeated")
        if not _is_json_object(as_text(function.get("arguments"))):
            _fault(f"the arguments of tool call {call_id!r} are not a JSON object")
        self.used_ids.add(call_id)
        return call_id

    def _take_result(self, message: Mapping[str, object]) -> None:
        call_id = as_text(message.get("tool_call_id"))
        if call_id not in self.open_calls:
            _fault(f"a result for {call_id!r}, which no tool call directly before it asked for")
        if call_id != self.open_calls[0]:
            _fault(f"the result for {call_id!r} does not stand in the order of the calls")
        _check_content(message.get("content"), may_be_empty=True)
        del self.open_calls[0]


def _is_json_object(text: str) -> bool:
    """By its form: a number may be larger than any that a program can hold."""
    try:
        value: object = json.loads(
            text, parse_int=str, parse_float=str, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        return False
    return is_object(value)


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is no JSON"
    raise ValueError(message)


def _check_content(content: object, *, may_be_empty: bool = False) -> None:
    if isinstance(content, str):
        _check_text(content, may_be_empty=may_be_empty)
    elif is_array(content) and content:
        for part in content:
            _check_part(as_object(part))
    else:
        _fault("content must be text or a non-empty array of parts")


def _check_part(part: Mapping[str, object]) -> None:
    kind = part.get("type")
    known = _PART_KEYS.get(kind) if isinstance(kind, str) else None
    if known is None or set(part) != set(known):
        _fault(f"unknown content part of type {kind!r}, or with keys it may not have")
    if kind == "text":
        _check_text(part.get("text"), may_be_empty=False)
    elif not as_text(as_object(part.get("image_url")).get("url")):
        _fault("an image part needs image_url.url")


def _check_text(text: object, *, may_be_empty: bool) -> None:
    if not isinstance(text, str):
        _fault("text must be a string")
    if not may_be_empty and not text.strip():
        _fault("text must not be empty or whitespace only")
    if has_surrogate(text):
        _fault("text holds half of a surrogate pair, which is no Unicode")


def _fault(text: str) -> NoReturn:
    raise _Malformed(text)


def _is_name(name: object) -> bool:
    """What OpenAI takes as the name of a function."""
    return _NAME.fullmatch(as_text(name) or "") is not None
