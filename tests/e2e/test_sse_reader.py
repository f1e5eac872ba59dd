"""The reader that judges our streams is itself held to the HTML standard (9.2.6)."""

import pytest

from tests.support.sse_reader import SseEvent, SseParser

STREAM = (
    "\N{ZERO WIDTH NO-BREAK SPACE}: a comment\n"
    "id: 1\nevent: A\ndata: one\n\n"
    "data:two\ndata:  lines\r\n\r\n"
    "id: 3\rdata\r\r"
    "event: no data, so no event\nid: 4\n\n"
    "retry: 10\nunknown: x\nid: bad\0id\ndata: 漢字\u2028🙂\n\n"
    "data: unfinished\n"
).encode()
EVENTS = [
    SseEvent(id="1", type="A", data="one"),
    SseEvent(id="1", type="message", data="two\n lines"),
    SseEvent(id="3", type="message", data=""),
    SseEvent(id="4", type="message", data="漢字\u2028🙂"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_events_do_not_depend_on_how_the_bytes_arrive(size: int) -> None:
    parser = SseParser()
    pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]

    assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS


def test_a_new_connection_goes_on_with_the_last_id() -> None:
    assert SseParser(last_id="7").feed(b"data: x\n\n") == [
        SseEvent(id="7", type="message", data="x")
    ]
