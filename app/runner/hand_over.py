"""A turn that comes to be at work where a worker has a place free is handed to that worker at once.

The commit that opens the turn, or lets it go on, makes the claim as well, and begins the model call
if one is next: then neither needs a statement of its own, and the model is called as soon as the
commit is stored. Where no place is free nothing is different but that: any worker claims the turn.

Hooks come before a step is begun, and calls are judged before they are: such a turn is handed over
as it is, and its driver sees to that.
"""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from app.ports import (
    AgentCatalog,
    Claim,
    ClaimedTurn,
    Commit,
    HistoryMessage,
    KeyTaken,
    NewId,
    Place,
    Places,
    VersionConflict,
)
from app.runner.exact_agent import exact_agent
from app.turn import inputs as i
from app.turn.decide import decide
from app.turn.evolve import advance
from app.turn.ids import AttemptId
from app.turn.next_step import CallModel, next_step

_REFUSALS = (VersionConflict, KeyTaken)
"""By which the store says that nothing was written."""


@dataclass(slots=True, kw_only=True)
class Handing:
    """A commit that may bring its turn to the worker here."""

    commit: Commit
    """With the claim and what is begun, where there is a place."""
    may_be_stored: bool = False
    """To be set before the store is told: from then on only a refusal says that it is not."""
    _place: Place | None = None
    _begun: AttemptId | None = None
    _is_handed: bool = False

    def done(self, claim: Claim | None, history: Sequence[HistoryMessage] | None = None) -> None:
        """The commit is stored, and has made `claim`; the worker goes on from there.

        Args:
            claim: on the turn; `None` where there was no place, or the store's answer was lost.
            history: all of the conversation, where that is known.
        """
        if self._place is None or claim is None:
            return
        turn, begun = self.commit.after, self._begun
        self._place.fill(ClaimedTurn(turn=turn, claim=claim, begun=begun, history=history))
        self._is_handed = True

    async def has_begun(self) -> None:
        """Once the worker has gone as far as it can without waiting: the model is what takes long.

        The caller is answered meanwhile.
        """
        if self._is_handed:
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """From whoever lets a turn go on to the worker of the same process."""

    places: Places
    catalog: AgentCatalog
    new_id: NewId

    @contextmanager
    def of(self, commit: Commit) -> Generator[Handing]:
        """The commit by which a turn at rest, or a new one, comes to be at work.

        A place is kept for it until the context is left. By an exception other than a refusal, or
        without an answer of the store, it is left in doubt.
        """
        place = self.places.keep(commit.after.identity)
        if place is None:
            yield Handing(commit=commit)
            return
        begun, attempt_id = self._begun(replace(commit, lease=place.lease))
        handing = Handing(commit=begun, _place=place, _begun=attempt_id)
        try:
            yield handing
        except _REFUSALS:
            handing.may_be_stored = False
            raise
        finally:
            turn_id = commit.after.identity.turn_id
            place.give_up(in_doubt=turn_id if handing.may_be_stored else None)

    def _begun(self, commit: Commit) -> tuple[Commit, AttemptId | None]:
        """The commit with the begin of a model call, if that is what comes next."""
        turn = commit.after
        loaded = exact_agent(self.catalog, turn.identity)
        if loaded is None or loaded.hooks is not None:
            return commit, None
        if not isinstance(next_step(turn, at=commit.at), CallModel):
            return commit, None
        attempt_id = AttemptId(self.new_id("att"))
        begin = i.BeginStep(attempt_id=attempt_id)
        events = decide(turn, begin, at=commit.at, agent=loaded.agent)
        after = advance(turn, events)
        if after.attempt_in_flight != attempt_id:  # a limit, or a question
            return commit, None
        return replace(commit, after=after, events=(*commit.events, *events)), attempt_id


def handed(
    hand_over: HandOver | None, commit: Commit, *, is_due: bool
) -> AbstractContextManager[Handing]:
    """The commit, handed over if the turn is due by it and there is a worker to hand it to."""
    if hand_over is None or not is_due:
        return nullcontext(Handing(commit=commit))
    return hand_over.of(commit)
