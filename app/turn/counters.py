"""What of a turn is counted."""

from dataclasses import dataclass

from app.turn.replacing import replace


@dataclass(frozen=True, kw_only=True)
class Counters:
    steps: int = 0
    model_attempts: int = 0
    """Requests sent; one lost in a crash counts as sent and failed."""
    model_successes: int = 0
    model_failures: int = 0
    """Recognised failures, those retried by themselves included."""
    retries: int = 0
    """Automatic retries scheduled over the whole turn, of its model and its tools; never reduced.
    """
    consecutive_retries: int = 0
    """Automatic retries since the last success or command; each call counts its own as well."""
    tool_calls: int = 0
    """Tools entered, second attempts included."""

    def plus(self, **by: int) -> "Counters":
        """The counters, those named higher by so much."""
        return replace(self, **{name: getattr(self, name) + n for name, n in by.items()})
