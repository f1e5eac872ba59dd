"""Places of a worker that are kept for turns which are about to be stored in its process."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from app.ports import ClaimedTurn, Lease
from app.turn.ids import TurnId

_LEASES = 2
"""For so many a claim may be in doubt: its commit is given up after less than one, and it lasts for
one."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptPlace:
    """`ports.Place`."""

    lease: Lease
    _settle: Callable[["KeptPlace", ClaimedTurn | None, TurnId | None], None]
    kept_at: float = field(default_factory=time.monotonic)
    """Before the claim is made: its lease reaches at least so far beyond."""

    def fill(self, claimed: ClaimedTurn) -> None:
        self._settle(self, claimed, None)

    def give_up(self, in_doubt: TurnId | None = None) -> None:
        self._settle(self, None, in_doubt)


class Doubts:
    """Turns on which there may be a claim of the worker that nobody drives.

    The answer to the commit was lost, or nobody waited for it. It may still happen a moment later,
    so a turn stays in doubt until its claim was given back, or for so long that there is none.
    """

    def __init__(self) -> None:
        self._until: dict[TurnId, float] = {}

    def add(self, turn_id: TurnId, place: KeptPlace) -> None:
        """The claim, if there is one, was made or is about to be."""
        self._until[turn_id] = place.kept_at + _LEASES * place.lease.seconds

    def besides(self, held: Collection[TurnId]) -> frozenset[TurnId]:
        """Those that are not held by now."""
        return frozenset(self._until.keys() - held)

    def settle(self, given_back: Collection[TurnId]) -> None:
        """The claims were given back; whatever is too old is forgotten."""
        now = time.monotonic()
        self._until = {
            turn_id: until
            for turn_id, until in self._until.items()
            if turn_id not in given_back and now < until
        }
