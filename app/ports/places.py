"""Places of this process's worker, kept for turns that come to be at work in the process."""

from typing import Protocol

from app.ports.records import ClaimedTurn, Lease
from app.turn.ids import Identity, TurnId


class Place(Protocol):
    """Kept for one turn, until it is filled or given up."""

    @property
    def lease(self) -> Lease:
        """The claim to make for the worker."""
        ...

    def fill(self, claimed: ClaimedTurn) -> None:
        """The worker drives the turn from now on."""
        ...

    def give_up(self, in_doubt: TurnId | None = None) -> None:
        """Anybody may have the place; without effect once it is filled.

        The claim on a turn `in_doubt` may have been made, now or a moment later: the worker gives
        it back.
        """
        ...


class Places(Protocol):
    """What the worker has free while nobody else's turn is due."""

    def keep(self, identity: Identity) -> Place | None:
        """A place for this turn; `None`: it is to be claimed like any other."""
        ...
