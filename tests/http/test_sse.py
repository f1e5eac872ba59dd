"""Frames of events, and what is kept of them for other readers."""

import pytest

from app.http.sse import Frames, frame


def test_a_frame_names_its_place_its_type_and_its_line() -> None:
    assert frame("2:6:31", "MODEL_TEXT", b"{}") == b"id: 2:6:31\nevent: MODEL_TEXT\ndata: {}\n\n"


@pytest.mark.parametrize("sizes", [[1] * 40, [3, 1, 2] * 20, [4] * 16])
def test_the_oldest_frames_give_way_to_newer_ones(sizes: list[int]) -> None:
    frames = Frames(largest_bytes=64)
    for number, size in enumerate(sizes):
        frames.keep(number, b"x" * size)

        kept = [n for n in range(number + 1) if frames.get(n) is not None]
        assert kept == list(range(kept[0], number + 1))
        assert sum(sizes[n] for n in kept) <= 64
        assert kept[0] == 0 or sum(sizes[n] for n in (kept[0] - 1, *kept)) > 64


def test_a_frame_that_would_displace_many_others_is_not_kept() -> None:
    frames = Frames(largest_bytes=64)
    frames.keep("large", b"x" * 5)
    frames.keep("small", b"x" * 4)

    assert frames.get("large") is None
    assert frames.get("small") == b"xxxx"


def test_a_frame_that_is_kept_twice_takes_its_room_once() -> None:
    frames = Frames(largest_bytes=64)
    for _ in range(20):
        frames.keep("one", b"xxxx")
    for number in range(15):
        frames.keep(number, b"xxxx")

    assert frames.get("one") == b"xxxx"
