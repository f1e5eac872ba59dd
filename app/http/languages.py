"""The languages that people are spoken to in, and which of them a caller prefers."""

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from starlette.datastructures import Headers
from starlette.types import Scope

Language: TypeAlias = Literal["en", "zh"]
Words: TypeAlias = Mapping[Language, str]

_LANGUAGES: Mapping[str, Language] = {"en": "en", "zh": "zh"}
_QUALITY = re.compile(r"q=([01](?:\.\d{0,3})?)")


def language_of(accept_language: str | None) -> Language:
    """Chinese when the caller prefers it to English, else English."""
    wanted: Language = "en"
    highest = 0.0
    for preference in (accept_language or "").lower().split(","):
        tag, _, weight = preference.partition(";")
        language = _LANGUAGES.get(tag.strip().partition("-")[0])
        if language is not None and _quality(weight) > highest:
            wanted, highest = language, _quality(weight)
    return wanted


def language_in(scope: Scope) -> Language:
    """The language that a request asks for."""
    return language_of(Headers(scope=scope).get("accept-language"))


def _quality(weight: str) -> float:
    """The `q` of a preference: 1 when none is given, 0 for what is none."""
    if not weight.strip():
        return 1.0
    match = _QUALITY.fullmatch(weight.strip())
    return float(match[1]) if match else 0.0
