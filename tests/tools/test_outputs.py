from enum import Enum

from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.tools.outputs import MAX_CONTENT_BYTES, MAX_ERROR_CHARACTERS, completed, failed, refused
from app.turn.transcript import Outcome
from tests.tools.calls import a_context


class Colour(str, Enum):  # noqa: UP042 - the older way, which str() does not undo
    RED = "red"


def test_a_string_is_said_as_it_is() -> None:
    assert completed('{"a":  1}').content == '{"a":  1}'
    assert completed(Colour.RED).content == "red"


def test_a_number_that_no_json_can_say_is_said_in_words() -> None:
    assert completed([float("nan"), float("inf")]).content == '["NaN","Infinity"]'


def test_a_result_of_64_kib_is_left_alone() -> None:
    text = "x" * MAX_CONTENT_BYTES

    assert completed(text).content == text


def test_a_longer_result_is_cut_and_says_how_much_is_missing() -> None:
    content = completed("x" * 100_000).content

    kept, marker = content.split("\n")
    assert marker == f"[cut here: {100_000 - len(kept)} of 100000 bytes left out]"
    assert len(content) <= MAX_CONTENT_BYTES


@settings(deadline=None)
@given(
    tail=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40),
    filler=st.sampled_from(["x", "é", "漢", "🦊"]),
)
def test_a_cut_falls_between_characters_and_keeps_the_bound(tail: str, filler: str) -> None:
    text = tail + filler * (MAX_CONTENT_BYTES + 1)

    content = completed(text).content

    kept = content[: content.rindex("\n[cut here:")]
    assert text.startswith(kept)
    assert MAX_CONTENT_BYTES - 80 < len(content.encode()) <= MAX_CONTENT_BYTES


@settings(deadline=None)
@given(text=st.text(alphabet=st.characters()))
@example(text="\ud83e\udd8a and half of one: \ud83e")
def test_whatever_is_said_can_be_stored(text: str) -> None:
    said = [
        completed(text),
        completed([text]),
        refused(text),
        failed(ValueError(text), a_context()),
    ]

    assert all(each.content.encode().decode() == each.content for each in said)


def test_halves_of_a_character_are_joined_and_a_lone_half_is_replaced() -> None:
    assert completed("\ud83e\udd8a \ud83e").content == "🦊 \ufffd"


def test_a_result_whose_own_serialiser_raises_is_an_error() -> None:
    endless: list[object] = []
    endless.append(endless)

    said = completed(endless)

    assert said.outcome is Outcome.ERROR
    assert "ran to its end" in said.content
    assert len(said.content) <= MAX_ERROR_CHARACTERS
