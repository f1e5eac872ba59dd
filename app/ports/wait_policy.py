"""What a wait policy may say, wherever one is declared: for an agent or for a tool."""

from datetime import timedelta
from typing import get_args

from app.turn.agent import OnExpiry, WaitPolicy

LONGEST_WAIT = timedelta(days=365)


def fault_of(wait: object) -> str | None:
    """Why `wait` is no policy for waits, in words for whoever declares it; `None` if it is one."""
    if not isinstance(wait, WaitPolicy):
        return f"wait must be a WaitPolicy, not {wait!r:.200}"
    if not (wait.timeout is None or _is_usable(wait.timeout)):
        return f"wait.timeout must be a timedelta of up to 365 days, not {wait.timeout!r:.200}"
    if wait.on_expiry not in get_args(OnExpiry):
        known = ", ".join(map(repr, get_args(OnExpiry)))
        return f"wait.on_expiry must be one of {known}, not {wait.on_expiry!r:.200}"
    return None


def _is_usable(timeout: object) -> bool:
    return isinstance(timeout, timedelta) and timedelta(0) < timeout <= LONGEST_WAIT
