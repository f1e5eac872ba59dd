"""The bytes of an answered call in, JSON objects out; no I/O, the same for every wire.

The content type is not asked, because it lies: event streams come as `application/json`, bare JSON
as `text/event-stream`, and NDJSON as anything. What the lines look like decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from app.providers.sse_lines import Event, EventStream
from app.providers.wire_json import JsonObject, is_array, is_object, parsed

MAX_ANSWER_CHARACTERS = 32 * 1024 * 1024


class AnswerTooLongError(Exception):
    """An answer holds more than 32 Mi characters."""


@dataclass(frozen=True, slots=True)
class Done:
    """The mark `[DONE]`, which OpenAI's wire ends with."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Data that is no JSON object."""

    text: str


Frame: TypeAlias = JsonObject | Done | Garbage


@dataclass(slots=True)
class JsonFrames:
    """Cuts bytes into frames, wherever the bytes are cut themselves."""

    _events: EventStream = field(default_factory=EventStream)
    _stray: list[str] = field(default_factory=list[str])
    _stray_characters: int = 0

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The frames completed by these bytes, in order.

        Raises:
            LineTooLongError: A line is longer than 8 MiB.
            AnswerTooLongError: Lines outside of events hold more than 32 Mi characters.
        """
        for event in self._events.feed(piece):
            yield from self._read(event)

    def close(self) -> Iterator[Frame]:
        """What was still open when the bytes ended; stray lines that are no JSON come last."""
        for event in self._events.close():
            yield from self._read(event)
        yield from self._read_stray()
        if self._stray:
            yield Garbage("\n".join(self._stray))

    def _read(self, event: Event) -> Sequence[Frame]:
        if event.is_stray:
            return self._read_stray_line(event.lines[0])
        if len(event.lines) == 1:
            return self._read_data(event.lines[0])
        joined = "\n".join(event.lines)
        if parsed(joined) is not None:
            return self._read_data(joined)
        return [frame for line in event.lines for frame in self._read_data(line)]

    def _read_data(self, data: str) -> Sequence[Frame]:
        data = data.strip()
        if data == "[DONE]":
            return [*self._read_stray(), Done()]
        if not data or data[0] == ":":
            return ()
        return _frames(parsed(data), data)

    def _read_stray_line(self, line: str) -> Sequence[Frame]:
        """NDJSON has a whole object on every line; a pretty-printed body has not."""
        value = None if self._stray else parsed(line)
        if is_object(value):
            return (value,)
        self._stray.append(line)
        self._stray_characters += len(line)
        if self._stray_characters > MAX_ANSWER_CHARACTERS:
            raise AnswerTooLongError
        return ()

    def _read_stray(self) -> Sequence[Frame]:
        body = parsed("\n".join(self._stray)) if self._stray else None
        if body is None:
            return ()
        self._stray = []
        return _frames(body, "")


def _frames(value: object, text: str) -> Sequence[Frame]:
    if is_object(value):
        return (value,)
    entries = value if is_array(value) else (value,)
    return [entry if is_object(entry) else Garbage(text) for entry in entries]
