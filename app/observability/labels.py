"""Values of labels, kept few: what providers and callers make up must not fill a server's memory.

A value is taken as it is only where it looks like a name, and only so many different ones of a
kind; every other one is `other`. So no text of a provider, and nothing that tells tenants apart,
becomes a label.
"""

import re
from dataclasses import dataclass, field

NONE = "none"
OTHER = "other"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,79}")
_LIKE_AN_ID = re.compile(
    r"\d{6,}|[0-9a-f]{12,}|\b(?:sk|org|proj|acct|key|req|user)[-_][\w-]{6,}", re.IGNORECASE
)
_STATUS = re.compile(r"[1-5]\d\d")


def as_name(value: str | None) -> str:
    """The value, where it is a name and no id; `none` without one, `other` for anything else."""
    if not value:
        return NONE
    is_name = _NAME.fullmatch(value) and not _LIKE_AN_ID.search(value)
    return value if is_name else OTHER


def as_status(status: int) -> str:
    """An HTTP status; `none` when no answer came."""
    if status == 0:
        return NONE
    return str(status) if _STATUS.fullmatch(str(status)) else OTHER


@dataclass(slots=True)
class Few:
    """Takes the first `most` values it sees, and calls all others `other`."""

    most: int
    _seen: set[str] = field(default_factory=set[str])

    def __call__(self, value: str) -> str:
        if value in self._seen or value in {NONE, OTHER}:
            return value
        if len(self._seen) >= self.most:
            return OTHER
        self._seen.add(value)
        return value
