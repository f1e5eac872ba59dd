"""Headers that say how an answer is wanted."""

import pytest

from app.http.languages import Language, language_of
from app.routers.preferences import parse_prefer


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("respond-async", 0),
        ("wait=20", 20),
        ("WAIT = 20", 20),
        ('wait="20"', 20),
        ("respond-async, wait=7", 7),
        ("handling=lenient; wait=3, wait=5", 5),
        ("wait=5;foo=bar", 5),
        ("wait=999999", 60),
        ("wait=-1", 0),
        ("wait=1.5", 0),
        ("wait", 0),
        ("wait=9999999", 0),
    ],
)
def test_a_preference_is_followed_within_its_limit_or_ignored(
    prefer: str | None, seconds: int
) -> None:
    assert parse_prefer(prefer).wait_seconds == seconds


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        (None, "en"),
        ("", "en"),
        ("zh", "zh"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("zh;q=0.1, en;q=0.9", "en"),
        ("en;q=0.1, ZH-Hant;q=0.2", "zh"),
        ("de, zh;q=0.5", "zh"),
        ("zh, en", "zh"),
        ("zh;q=0, en", "en"),
        ("zh;q=0", "en"),
        ("zh;q=x", "en"),
        ("zhx", "en"),
        ("*", "en"),
    ],
)
def test_the_language_is_the_one_that_is_preferred(
    accepted: str | None, language: Language
) -> None:
    assert language_of(accepted) == language
