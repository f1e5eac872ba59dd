"""What an operator may read of a provider's words: no credentials, and not too much of it."""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from functools import lru_cache

MAX_CHARACTERS = 500

_HIDDEN = "[redacted]"
_SECRETS = re.compile(
    r"\b(?:sk|pk|rk|ak|gsk|xai|r8|hf)[-_][\w*.-]{6,}"
    r"|\borg[-_][\w-]{4,}|\bproj_[\w-]{4,}"
    r"|\bAIza[\w-]{10,}|\bAKIA[A-Z0-9]{12,}|\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}"
)
_LABELLED = re.compile(
    r"((?:bearer|basic) +|(?:x-)?api[-_ ]?key(?:[\"'\s]{0,3}[:=]|:? provided:?| is)[\"'\s]{0,3}"
    r"|(?:password|secret|access_token|token)[\"']?\s{0,3}[:=][\"'\s]{0,3})[^\s\"',;)}]{4,}",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """The text on one line, without credentials, at most 500 characters."""
    text = " ".join(text[: 8 * MAX_CHARACTERS].split())
    text = _LABELLED.sub(rf"\1{_HIDDEN}", _SECRETS.sub(_HIDDEN, text))
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


_LEAST_KEY = 8
"""A shorter one is a word that servers without keys are given, such as `none`."""
_LEAST_PIECE = 6
_CUT = "…"


def without_key(key: str, text: str | None) -> str | None:
    """The text without a key that we know, however it is written.

    As it is, percent-encoded, escaped as in JSON or HTML, in base64 or hexadecimal; also a piece of
    it where the text was cut off.
    """
    if text is None or len(key) < _LEAST_KEY:
        return text
    text = _any_spelling(key).sub(_HIDDEN, text)
    if not text.endswith(_CUT):
        return text
    return next(_without_piece(key, text), text)


def _without_piece(key: str, text: str) -> Iterator[str]:
    for end in range(len(key) - 1, _LEAST_PIECE - 1, -1):
        piece = re.search(_spelled(key[:end]) + _CUT + "$", text, re.IGNORECASE)
        if piece is not None:
            yield text[: piece.start()] + _HIDDEN + _CUT


@lru_cache(maxsize=64)
def _any_spelling(key: str) -> re.Pattern[str]:
    spellings = [_spelled(key), *(re.escape(each) for each in _encoded(key.encode()))]
    return re.compile("|".join(spellings), re.IGNORECASE)


def _spelled(text: str) -> str:
    """Each character as it is or escaped, in any mixture; linear to match."""
    return "".join(
        rf"(?:\\?{re.escape(c)}|%(?:25)?{ord(c):02x}|\\u{ord(c):04x}|\\x{ord(c):02x}"
        rf"|&\#{ord(c)};|&\#x{ord(c):x};)"
        for c in text
    )


def _encoded(key: bytes) -> Iterator[str]:
    """In base64 by itself or inside of something longer: what is the same whatever is around it."""
    yield key.hex()
    for before in range(3):
        padded = b"\0" * before + key
        whole = len(padded) // 3 * 3
        first = (0, 2, 3)[before]
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(padded[:whole])[first:].decode()
