"""Places of a worker that are kept for turns which are about to be stored in its process."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from app.ports import ClaimedTurn, Lease


@dataclass(frozen=True, slots=True, eq=False)
class KeptPlace:
    """`ports.Place`."""

    lease: Lease
    _settle: Callable[["KeptPlace", ClaimedTurn | None], None]
    kept_at: float = field(default_factory=time.monotonic)
    """Before the claim is made: its lease reaches at least so far beyond."""

    def fill(self, claimed: ClaimedTurn) -> None:
        self._settle(self, claimed)

    def give_up(self) -> None:
        self._settle(self, None)
