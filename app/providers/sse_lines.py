"""Bytes in, events out: the line rules of an event stream, cut anywhere, without any I/O.

A line ends with LF, CRLF or CR and with nothing else. Python's `str.splitlines` and httpx's line
iterators also cut at U+2028, U+2029 and U+0085, which models emit raw inside JSON strings; that is
why this is written by hand, on bytes. A CR may be the first half of a CRLF whose LF comes with the
next bytes, so the splitter remembers it.

Two departures from the HTML standard serve real providers: the last event counts even when no
blank line follows it, and lines that are no field at all are handed on as `stray` (a JSON body
under `text/event-stream`, NDJSON, an HTML page).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_LINE_BYTES = 8 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_FIELDS = frozenset({"data", "event", "id", "retry"})


class LineTooLongError(Exception):
    """One line of an event stream, or one event of several lines, is longer than 8 MiB."""


class Event(NamedTuple):
    """A block of an event stream: its data lines, not yet joined, or one stray line."""

    lines: tuple[str, ...]
    name: str | None = None
    is_stray: bool = False
    """The line was no field of an event stream."""


@dataclass(slots=True)
class LineSplitter:
    """Cuts bytes into lines; feeding costs the same whatever the size of the pieces."""

    max_line_bytes: int = MAX_LINE_BYTES
    _open: list[bytes] = field(default_factory=list[bytes])
    _open_bytes: int = 0
    _ended_with_cr: bool = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines completed by this piece, without their ends.

        Raises:
            LineTooLongError: The line still open is longer than `max_line_bytes`.
        """
        if self._ended_with_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._ended_with_cr = False
        if b"\r" in piece:
            self._ended_with_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = piece.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._open, lines[0]))
            self._open, self._open_bytes = [], 0
        self._keep_open(rest)
        return lines

    def close(self) -> list[bytes]:
        """The last line, when the stream ended without ending it."""
        rest, self._open, self._open_bytes = b"".join(self._open), [], 0
        return [rest] if rest else []

    def _keep_open(self, rest: bytes) -> None:
        if rest:
            self._open.append(rest)
            self._open_bytes += len(rest)
        if self._open_bytes > self.max_line_bytes:
            raise LineTooLongError


@dataclass(slots=True)
class EventStream:
    """Puts lines together into events."""

    _splitter: LineSplitter = field(default_factory=LineSplitter)
    _data: list[str] = field(default_factory=list[str])
    _data_characters: int = 0
    _name: str | None = None
    _is_first_line: bool = True

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events completed by these bytes, in order.

        Raises:
            LineTooLongError: A line or an event is longer than 8 MiB.
        """
        return self._events(self._without_mark(self._splitter.feed(piece)))

    def close(self) -> Iterator[Event]:
        """The event left open when the stream ended."""
        return self._events(self._without_mark([*self._splitter.close(), b""]))

    def _without_mark(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        if not lines or not self._is_first_line:
            return lines
        self._is_first_line = False
        return [lines[0].removeprefix(_BOM), *lines[1:]]

    def _events(self, lines: Sequence[bytes]) -> Iterator[Event]:
        for raw in lines:
            line = raw.decode("utf-8", "replace")
            if not line:
                if self._data:
                    yield Event(tuple(self._data), self._name)
                self._data, self._data_characters, self._name = [], 0, None
            elif line[0] != ":" and not self._takes(line):
                yield Event((line,), is_stray=True)

    def _takes(self, line: str) -> bool:
        """Keep what a field says; whether the line is one."""
        name, _, value = line.partition(":")
        if name == "data":
            self._keep(value.removeprefix(" "))
        elif name == "event":
            self._name = value.strip()
        return name in _FIELDS

    def _keep(self, data: str) -> None:
        self._data.append(data)
        self._data_characters += len(data) + 1
        if self._data_characters > MAX_LINE_BYTES:
            raise LineTooLongError
