"""A key that is known is found however it is written; other words stay."""

import html
import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.providers.redaction import redacted, without_key

KEY = "canary+key/9f8e7d6c5b"
SPELLINGS = {
    "plain": KEY,
    "percent": quote(KEY, safe=""),
    "percent, twice": quote(quote(KEY, safe=""), safe=""),
    "percent, every character": "".join(f"%{ord(c):02X}" for c in KEY),
    "JSON": KEY.replace("/", "\\/"),
    "JSON, every character": "".join(f"\\u{ord(c):04x}" for c in KEY),
    "HTML": html.escape(KEY).replace("/", "&#47;").replace("+", "&#x2b;"),
    "hexadecimal": KEY.encode().hex(),
    "base64": b64encode(KEY.encode()).decode(),
    "base64 of a header": b64encode(f"Bearer {KEY}".encode()).decode(),
    "base64 of a login": urlsafe_b64encode(f"me:{KEY}!".encode()).decode(),
    "inside JSON inside JSON": json.dumps(json.dumps({"key": KEY})),
    "in capitals": KEY.upper(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_is_found_in_every_spelling(spelling: str) -> None:
    text = without_key(KEY, f"Incorrect key {SPELLINGS[spelling]} provided")

    assert text is not None
    assert text.startswith("Incorrect key ")
    assert "[redacted]" in text
    assert "9f8e7d6c" not in text
    assert b64encode(KEY.encode()).decode()[3:-4] not in text


@pytest.mark.parametrize("length", range(6, len(KEY)))
def test_a_piece_of_a_key_at_a_cut_goes_too(length: int) -> None:
    assert without_key(KEY, f"wrong: {KEY[:length]}…") == "wrong: [redacted]…"


@given(st.text())
def test_other_text_stays_as_it_is(text: str) -> None:
    assert without_key(KEY, text) == text


@pytest.mark.parametrize("word", ["", "none", "EMPTY", "ollama"])
def test_a_word_that_stands_for_no_key_is_none(word: str) -> None:
    assert without_key(word, f"there is {word} of it") == f"there is {word} of it"


def test_what_names_an_account_is_no_operators_business() -> None:
    said = redacted("Rate limit reached in organization org-4f9d1c on project proj_8a7b6c5d.")

    assert said == "Rate limit reached in organization [redacted] on project [redacted]."
