"""`Prefer` (RFC 7240): answer at once, or after waiting a while."""

import re
from dataclasses import dataclass

_WAIT = re.compile(r"wait\s*=\s*\"?(\d{1,6})\"?", re.IGNORECASE)
LONGEST_WAIT_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    wait_seconds: int = 0
    """0: answer at once (`respond-async`, the default)."""

    @property
    def applied(self) -> dict[str, str]:
        """The header that says what was made of the preference."""
        if not self.wait_seconds:
            return {}
        return {"Preference-Applied": f"wait={self.wait_seconds}"}


def parse_prefer(prefer: str | None) -> Preference:
    """Unknown preferences are ignored, as the standard asks; a longer wait is cut to 60 s."""
    for part in (prefer or "").split(","):
        if match := _WAIT.fullmatch(part.split(";")[0].strip()):
            return Preference(wait_seconds=min(int(match[1]), LONGEST_WAIT_SECONDS))
    return Preference()
