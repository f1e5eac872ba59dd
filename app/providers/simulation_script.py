"""The scripts of the simulated provider: their shape, and what one round answers.

A script is `{"rounds": [ROUND, ...], "strict": true}`. A round may have `text`, `reasoning`,
`calls` (each with `id`, `name`, `arguments`), `usage`, `stop`, `chunks` (pieces of text),
`argument_chunks` (pieces of each call's arguments), `delay_ms` (before every piece) and `faults`.
A fault happens `times` times (1 unless said) and is one of:

- `status`, with `headers` and `body`: an HTTP error;
- `cut_at_byte`: the body is cut behind so many bytes and the connection closed;
- `hang`: nothing comes at all, or with `cut_at_byte` nothing more behind so many bytes;
- `stream_error`: an error object in the stream, in place of the answer's end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import orjson

from app.providers.wire_json import JsonObject, as_array, as_count, as_object, as_text, is_object


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReply:
    """An HTTP error: status, headers and JSON body."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReply:
    """An answer, whole or broken in some way."""

    reasoning: tuple[str, ...] = ()
    """The pieces to stream, as `text`."""
    text: tuple[str, ...] = ()
    calls: tuple[JsonObject, ...] = ()
    """Each with id, name and arguments (a JSON text)."""
    argument_pieces: int = 1
    """In which the arguments of each call are sent."""
    stop: str = "stop"
    usage: JsonObject = field(default_factory=dict[str, object])
    delay_seconds: float = 0.0
    """Before every piece."""
    breaks_off: bool = False
    """Close the connection behind the last piece of text."""
    cut_at_byte: int | None = None
    """Send only this many bytes of the body."""
    hangs: bool = False
    """Behind the cut say nothing more instead of closing; without a cut say nothing at all."""
    stream_error: JsonObject | None = None
    """An error object in the stream, in place of its end."""


Reply: TypeAlias = ErrorReply | AnswerReply


class InvalidScriptError(Exception):
    """A script is not of the documented shape."""


_ROUND_KEYS = {"text", "reasoning", "calls", "usage", "stop", "faults"} | {
    *("chunks", "argument_chunks", "delay_ms")
}
_CALL_KEYS = {"id", "name", "arguments"}
_FAULT_KEYS = {"times", "status", "headers", "body", "cut_at_byte", "hang", "stream_error"}


def check_script(script: JsonObject) -> list[JsonObject]:
    """The rounds of a script.

    Raises:
        InvalidScriptError: `rounds` is not a non-empty list of objects, or a key is unknown.
    """
    _check_keys(script, {"rounds", "strict"})
    rounds = [entry for entry in as_array(script.get("rounds")) if is_object(entry)]
    if not rounds or len(rounds) != len(as_array(script.get("rounds"))):
        message = "rounds: a non-empty list of objects is needed"
        raise InvalidScriptError(message)
    for entry in rounds:
        _check_round(entry)
    return rounds


def invalid_request(message: str) -> ErrorReply:
    """A 400 in OpenAI's shape."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return ErrorReply(status=400, body={"error": error})


def nth_fault(this: JsonObject, used: int) -> JsonObject | None:
    """The fault that comes next in a round of which `used` have happened."""
    for entry in as_array(this.get("faults")):
        fault = as_object(entry)
        times = as_count(fault.get("times", 1)) or 0
        if used < times:
            return fault
        used -= times
    return None


def error_reply(fault: JsonObject) -> ErrorReply:
    """The HTTP error a fault describes."""
    headers = {name: str(value) for name, value in as_object(fault.get("headers")).items()}
    return ErrorReply(
        status=as_count(fault["status"]) or 500, headers=headers, body=fault.get("body")
    )


def answer_reply(this: JsonObject, number: int, fault: JsonObject | None = None) -> AnswerReply:
    """The answer of a round, with the fault that befalls it; `number` counts rounds from 0."""
    fault = fault or {}
    calls = tuple(
        _call(as_object(entry), f"call_{number}_{position}")
        for position, entry in enumerate(as_array(this.get("calls")), start=1)
    )
    stream_error = fault.get("stream_error")
    return AnswerReply(
        reasoning=pieces(as_text(this.get("reasoning")), 1),
        text=pieces(as_text(this.get("text")), as_count(this.get("chunks")) or 1),
        calls=calls,
        argument_pieces=as_count(this.get("argument_chunks")) or 1,
        stop=as_text(this.get("stop")) or ("tool_calls" if calls else "stop"),
        usage=as_object(this.get("usage")),
        delay_seconds=(as_count(this.get("delay_ms")) or 0) / 1000,
        cut_at_byte=as_count(fault.get("cut_at_byte")),
        hangs=fault.get("hang") is True,
        stream_error=stream_error if is_object(stream_error) else None,
    )


def _call(entry: JsonObject, default_id: str) -> JsonObject:
    arguments = entry.get("arguments", {})
    return {
        "id": as_text(entry.get("id", default_id)),
        "name": as_text(entry.get("name")),
        "arguments": arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode(),
    }


def pieces(text: str, count: int) -> tuple[str, ...]:
    """The text in `count` pieces of nearly one length; fewer when it has fewer characters."""
    count = max(1, min(count, len(text)))
    borders = [len(text) * number // count for number in range(count + 1)]
    cut = (text[start:end] for start, end in pairwise(borders))
    return tuple(piece for piece in cut if piece)


def _check_round(entry: JsonObject) -> None:
    _check_keys(entry, _ROUND_KEYS)
    for call in as_array(entry.get("calls")):
        _check_keys(as_object(call), _CALL_KEYS)
    for fault in as_array(entry.get("faults")):
        _check_keys(as_object(fault), _FAULT_KEYS)


def _check_keys(value: JsonObject, known: set[str]) -> None:
    unknown = sorted(set(value) - known)
    if unknown:
        message = f"unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}"
        raise InvalidScriptError(message)
