"""Labels: few, named, and nobody's secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.observability.labels import NONE, OTHER, Few, as_name, as_status


@pytest.mark.parametrize(
    "name", ["insufficient_quota", "1113", "rate_limit_error", "openai", "Throttling.User"]
)
def test_a_name_is_kept(name: str) -> None:
    assert as_name(name) == name


@pytest.mark.parametrize(
    "text",
    [
        "You exceeded your quota",
        "org-4f9d1c7a2b",
        "sk-abcdef0123",
        "request 17",
        "20260815093012",
        "deadbeefdeadbeef",
        "línea",
        'a"b',
        "a\nb",
        "x" * 81,
    ],
)
def test_text_and_ids_are_other(text: str) -> None:
    assert as_name(text) == OTHER


@given(st.none() | st.text())
def test_whatever_is_said_a_label_is_short_and_has_no_space(text: str | None) -> None:
    label = as_name(text)

    assert 0 < len(label) <= 80
    assert not any(character.isspace() for character in label)


@given(st.integers())
def test_a_status_is_one_of_http_or_a_word(status: int) -> None:
    assert as_status(status) in {NONE, OTHER, *map(str, range(100, 600))}


def test_what_comes_beyond_the_first_few_is_other() -> None:
    few = Few(most=2)

    assert [few(value) for value in ("a", "b", "c", "a", NONE, "d")] == [
        "a",
        "b",
        OTHER,
        "a",
        NONE,
        OTHER,
    ]
