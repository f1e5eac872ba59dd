"""What an operator may read of a provider's words: no credentials, and not too much of it."""

import re

MAX_CHARACTERS = 500

_HIDDEN = "[redacted]"
_SECRETS = re.compile(
    r"\b(?:sk|pk|rk|ak|gsk|xai|r8|hf)[-_][\w*.-]{6,}"
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
