"""The line rules of event streams, by bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.providers.sse_lines import Event, EventStream, LineSplitter, LineTooLongError


def _events(stream: bytes, *cuts: int) -> list[Event]:
    """What comes out when the bytes are cut at these places."""
    borders = [0, *cuts, len(stream)]
    events = EventStream()
    found = [event for start, end in pairwise(borders) for event in events.feed(stream[start:end])]
    return [*found, *events.close()]


def _data(stream: bytes) -> list[tuple[str, ...]]:
    return [event.lines for event in _events(stream)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_a_line_ends_with_lf_crlf_or_cr(end: bytes) -> None:
    stream = b"data: one" + end + end + b"data: two" + end + end

    assert _data(stream) == [("one",), ("two",)]


def test_separators_that_models_write_are_not_line_ends() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"

    assert _data(f"data: {text}\n\n".encode()) == [(text,)]


def test_a_crlf_cut_in_the_middle_is_one_line_end() -> None:
    assert _events(b"data: a\r\ndata: b\r\n\r\n", 8) == [Event(("a", "b"))]


def test_a_byte_order_mark_may_lead_even_in_pieces() -> None:
    assert _events(b"\xef\xbb\xbfdata: a\n\n", 1, 2) == [Event(("a",))]


def test_only_one_space_after_the_colon_belongs_to_the_format() -> None:
    assert _data(b"data:a\n\ndata: b\n\ndata:  c\n\ndata:\td\n\n") == [
        ("a",),
        ("b",),
        (" c",),
        ("\td",),
    ]


def test_comments_and_blocks_without_data_are_no_events() -> None:
    assert _data(b": ping\n\n:\n\nid: 1\nretry: 3000\n\nevent: beat\n\ndata: x\n\n") == [("x",)]


def test_an_event_keeps_its_name_and_all_its_data_lines() -> None:
    assert _events(b"data: a\nevent: error\ndata: b\n\ndata: c\n\n") == [
        Event(("a", "b"), "error"),
        Event(("c",)),
    ]


def test_the_last_event_counts_without_a_blank_line_or_a_line_end() -> None:
    assert _data(b"data: a\n\ndata: b") == [("a",), ("b",)]


def test_lines_that_are_no_field_are_handed_on_as_they_are() -> None:
    assert _events(b'{"id": 1}\n') == [Event(('{"id": 1}',), is_stray=True)]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert _data(b"data: \xff\xfea\n\n") == [("\ufffd\ufffda",)]


def test_a_line_longer_than_the_limit_is_refused_while_it_grows() -> None:
    splitter = LineSplitter(max_line_bytes=10)

    assert splitter.feed(b"0123456789") == []
    with pytest.raises(LineTooLongError):
        splitter.feed(b"0")


def test_an_event_longer_than_a_line_may_be_is_refused_too() -> None:
    lines = (b"data: " + b"x" * 1_000_000 + b"\n") * 9

    with pytest.raises(LineTooLongError):
        list(EventStream().feed(lines))


_FRAMING = st.sampled_from(
    [b"data", b":", b" ", b"\n", b"\r", b"\r\n", b"event", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"x"]
)


@given(st.lists(_FRAMING | st.binary(max_size=3), max_size=30), st.data())
def test_wherever_the_bytes_are_cut_the_same_events_come_out(
    pieces: list[bytes], draws: st.DataObject
) -> None:
    stream = b"".join(pieces)
    cuts = draws.draw(st.lists(st.integers(0, len(stream)), max_size=6))

    assert _events(stream, *sorted(cuts)) == _events(stream)
