"""A reader of event streams written from the HTML standard (9.2), independent of the service.

It parses byte by byte what the server sends, is cut off wherever a test wants, and reconnects as a
browser does: with the last id it was given, until it is told 204.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from random import Random
from typing import Any

import httpx
import orjson

from app.ports import JournalRow

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_TEXT = {"MODEL_TEXT", "MODEL_REASONING"}
_TERMINAL = {
    "TURN_COMPLETED",
    "TURN_FAILED",
    "TURN_CANCELLED",
    "MAX_ITERATIONS_REACHED",
    "MAX_STEPS_REACHED",
    "BUDGET_EXCEEDED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SseEvent:
    """An event as a browser would dispatch it."""

    id: str
    type: str
    data: str


@dataclass(slots=True)
class SseParser:
    """The events of one connection; what is left unfinished at its end is no event."""

    last_id: str = ""
    _line: bytes = b""
    _is_first_line: bool = True
    _ended_with_cr: bool = False
    _id: str | None = None
    _type: str = ""
    _data: list[str] = field(default_factory=list[str])

    def feed(self, piece: bytes) -> list[SseEvent]:
        """The events that `piece` completes."""
        if self._ended_with_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        elif not piece:
            return []
        self._ended_with_cr = piece.endswith(b"\r") if piece else False
        *lines, self._line = _LINE_END.split(self._line + piece)
        found = (self._take(self._without_bom(line)) for line in lines)
        return [event for event in found if event is not None]

    def _without_bom(self, line: bytes) -> str:
        if self._is_first_line:
            line = line.removeprefix(_BOM)
        self._is_first_line = False
        return line.decode("utf-8", "replace")

    def _take(self, line: str) -> SseEvent | None:
        if not line:
            return self._dispatched()
        name, _, value = line.partition(":")
        self._take_field(name, value.removeprefix(" "))
        return None

    def _take_field(self, name: str, value: str) -> None:
        match name:
            case "event":
                self._type = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
            case _:
                pass  # a comment, `retry`, or a field that is to be ignored

    def _dispatched(self) -> SseEvent | None:
        self.last_id = self.last_id if self._id is None else self._id
        event = SseEvent(id=self.last_id, type=self._type or "message", data="\n".join(self._data))
        is_empty = not self._data
        self._type, self._data = "", []
        return None if is_empty else event


@dataclass(slots=True)
class TurnReader:
    """What one reader of a turn's events has received, over all its connections."""

    client: httpx.AsyncClient
    turn_id: str
    last_id: str = ""
    pause_seconds: float = 0
    """How long it takes over each piece of a few kilobytes that it is given."""
    received: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The envelopes, each with its SSE id under `id`."""
    connections: int = 0

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.received]

    async def read(
        self,
        *,
        at_most_bytes: int | None = None,
        until: Callable[[dict[str, Any]], bool] = lambda _: False,
    ) -> bool:
        """Read one connection; False when there is no more to come, ever.

        Args:
            at_most_bytes: cut the connection behind so many.
            until: cut it behind the first event of which this is true.
        """
        self.connections += 1
        headers = {"Last-Event-ID": self.last_id} if self.last_id else {}
        path = f"/turns/{self.turn_id}/events"
        async with self.client.stream("GET", path, headers=headers) as answer:
            if answer.status_code == HTTPStatus.NO_CONTENT:
                return False
            assert answer.status_code == HTTPStatus.OK, await answer.aread()
            async with aclosing(_pieces(answer, at_most_bytes)) as pieces:
                await self._take(pieces, until)
        return True

    async def read_to_the_end(self) -> None:
        """Read and reconnect until the service says 204."""
        while await self.read():
            pass

    async def read_cut_at_random(self, random: Random, *, longest: int) -> None:
        """As `read_to_the_end`, each connection cut behind 1 to `longest` bytes, mostly few.

        `longest` must leave room for the largest event.
        """
        while await self.read(at_most_bytes=some_bytes(random, longest)):
            pass

    async def _take(
        self, pieces: AsyncGenerator[bytes], until: Callable[[dict[str, Any]], bool]
    ) -> None:
        parser = SseParser(last_id=self.last_id)
        async for piece in pieces:
            for event in parser.feed(piece):
                self.last_id = event.id
                envelope: dict[str, Any] = orjson.loads(event.data)
                assert envelope["type"] == event.type
                self.received.append(envelope | {"id": event.id})
                if until(envelope):
                    return
            if self.pause_seconds:
                await asyncio.sleep(self.pause_seconds)


def some_bytes(random: Random, longest: int) -> int:
    """1 to `longest`, any order of magnitude as likely as any other."""
    return int(longest ** random.random())


async def _pieces(answer: httpx.Response, at_most_bytes: int | None) -> AsyncGenerator[bytes]:
    left = at_most_bytes
    async for piece in answer.aiter_raw():
        if left is None or len(piece) < left:
            yield piece
            left = None if left is None else left - len(piece)
        else:
            yield piece[:left]
            return


def check_reading(received: Sequence[dict[str, Any]], journal: Sequence[JournalRow]) -> None:
    """A reader that began at the beginning has everything once, in order, and the whole text.

    A stored piece of text that the reader had already live is not sent again, so text is compared
    as text and not by events.
    """
    events = [event for row in journal for event in row.events]
    stored = [(n, event.type) for n, event in enumerate(events, 1) if event.type not in _TEXT]
    durable = [(e["sequence"], e["type"]) for e in received if e["type"] not in _TEXT]
    assert durable == stored
    ids = [_place(event["id"]) for event in received if event["type"] != "MODEL_REASONING"]
    assert ids == sorted(set(ids)), "an id came twice or out of order"
    assert [event["type"] for event in received if event["type"] in _TERMINAL] == [
        received[-1]["type"]
    ]
    _check_text(received)


def _check_text(received: Sequence[dict[str, Any]]) -> None:
    """Text put together by offset is the answer; a lost attempt's is withdrawn.

    Ids do not count reasoning, so a reader that was cut may get some of it again, never less.
    """
    text, reasoning, attempt = "", "", None
    for event in received:
        about = event["data"]
        match event["type"]:
            case "MODEL_STARTED":
                text, reasoning, attempt = "", "", about["attemptId"]
            case "MODEL_TEXT":
                assert about["attemptId"] == attempt, "text of an attempt that is not open"
                assert about["offset"] == len(text), "text is missing or came twice"
                text += about["text"]
            case "MODEL_REASONING":
                assert about["attemptId"] == attempt, "reasoning of an attempt that is not open"
                assert about["offset"] <= len(reasoning), "reasoning is missing"
                reasoning = reasoning[: about["offset"]] + about["text"]
            case "STEP_RECOVERED" if about["discardFrom"] is not None:
                assert about["attemptId"] == attempt
                text = text[: about["discardFrom"]]
            case "MODEL_COMPLETED":
                assert text == about["text"]
            case _:
                pass


def _place(event_id: str) -> tuple[int, int]:
    version, _, offset = event_id.partition(":")
    return int(version), int(offset or 0)
