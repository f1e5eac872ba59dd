"""A turn in the hands of one worker: how it stands, what is known of it, how it is reported on."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.ports import (
    ClaimedTurn,
    ClaimLost,
    HistoryMessage,
    LoadedAgent,
    NewId,
    RunError,
    StoreUnavailable,
    TurnStore,
    Wakeup,
    Wakeups,
)
from app.runner.asked_calls import AskedCalls
from app.runner.commit import TurnWriter
from app.runner.hooked_run import HookedRun
from app.runner.transcript import Transcript
from app.turn import inputs as i
from app.turn.ids import AttemptId
from app.turn.state import Turn

_LOOK_SECONDS = 1.5
"""How often a running step looks for a cancellation when no hint comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """For how long a worker may go on with a turn."""

    stopping: asyncio.Event
    """Set when the worker is to stop."""
    may_begin: Callable[[], bool]
    """Whether the claim is known to have been ours a short while ago."""


class TurnInHand:
    """What the steps of one drive share; a commit is the only thing that changes the turn here."""

    def __init__(
        self,
        held: ClaimedTurn,
        loaded: LoadedAgent,
        transcript: Transcript,
        *,
        store: TurnStore,
        writer: TurnWriter,
        wakeups: Wakeups,
        new_id: NewId,
        terms: Terms,
    ) -> None:
        self.turn = held.turn
        self.stopping = terms.stopping
        self.loaded = loaded
        self.agent = loaded.agent
        self.transcript = transcript
        self.asked = AskedCalls(store)
        self.new_id = new_id
        self.claim_is_given_up = False
        """By the commit that has brought the turn to rest."""
        self.fruitless = 0
        """Reports in a row that have brought nothing."""
        hooks = loaded.hooks
        self.hooked = None if hooks is None else HookedRun(hooks, store, lambda: self.turn)
        self._claim = held.claim
        self._store = store
        self._writer = writer
        self._wakeups = wakeups
        self._announced = set[AttemptId]() if held.begun is None else {held.begun}
        self._waiting: set[Wakeup] = set()
        self._may_begin = terms.may_begin

    @property
    def is_begun_here(self) -> bool:
        """Whether the step in flight is one that was begun for this drive."""
        return self.turn.attempt_in_flight in self._announced

    def announce(self) -> AttemptId:
        """The id of an attempt that the next commit may begin."""
        attempt_id = AttemptId(self.new_id("att"))
        self._announced.add(attempt_id)
        return attempt_id

    def require_claim(self) -> None:
        """To be asked right before anything is done outside.

        A process that stood still meanwhile goes on where it was, and its turn may be another's.

        Raises:
            ClaimLost: the claim is not known to have been ours a short while ago.
        """
        if not self._may_begin():
            message = f"the claim on turn {self.turn.identity.turn_id!r} was not renewed in time"
            raise ClaimLost(message)

    def disown(self, attempt_id: AttemptId) -> None:
        """The step is ended here without its end being known: it is lost, as if to a death."""
        self._announced.discard(attempt_id)

    async def report(self, given: i.Report) -> None:
        """Store what was seen, or is about to be done; the turn is then as it has left it.

        Raises:
            ClaimLost: the turn is another worker's now.
            StoreUnavailable, OutcomeUnknown: the database is away.
        """
        written = await self._writer.report(self.turn, given, self.agent, self._claim)
        self.turn = written.turn
        self.fruitless = 0 if written.events or written.raced else self.fruitless + 1
        self.claim_is_given_up = bool(written.events) and not self.turn.is_at_work
        if self.hooked is not None:
            self.hooked.sees(written.events)
        if written.raced:
            await self.look_anew()
            return
        self.transcript.add(written.messages)
        self.asked.sees(written.events)

    async def look_anew(self) -> None:
        """Others have changed the turn, so that what is remembered of it may be incomplete."""
        self.transcript = await Transcript.load(self._store, self.turn)
        self.asked.forget()

    async def seen(self, is_news: Callable[[Turn], bool]) -> None:
        """Until the stored turn, looked at again and again, is news."""
        turn_id = self.turn.identity.turn_id
        with self._wakeups.watch(turn_id) as wakeup:
            self._waiting.add(wakeup)
            try:
                while not is_news(self.turn):
                    if await wakeup.wait(_LOOK_SECONDS):
                        await self._look()
            finally:
                self._waiting.discard(wakeup)

    async def _look(self) -> None:
        with suppress(StoreUnavailable):
            found = await self._store.load(self.turn.identity.turn_id)
            if found and found.version > self.turn.version:  # text may be stored meanwhile
                self.turn = found

    async def interrupted(self, is_news: Callable[[Turn], bool]) -> None:
        """Until the stored turn is news, or the worker is to stop."""
        await self.seen(lambda turn: self.stopping.is_set() or is_news(turn))

    async def tell_of_stop(self) -> None:
        """Once the worker is to stop, end what waits to be interrupted.

        One task for a whole drive: a step is waited for many times.
        """
        await self.stopping.wait()
        for wakeup in self._waiting:
            wakeup.nudge()

    async def overtaken(self, attempt_id: AttemptId) -> None:
        """Until turn or worker are to stop, or the attempt is no longer in flight."""
        await self.interrupted(
            lambda turn: (
                turn.cancel_requested
                or turn.pause_requested
                or turn.attempt_in_flight != attempt_id
            )
        )

    def to_sum_up(self, *, is_asked: bool = False) -> Sequence[HistoryMessage]:
        """What of the turn's requests a summary could stand for.

        Where somebody has asked for one, they have said too what is to be left as it is; else it is
        all that was said before and is still sent.
        """
        if is_asked:
            keep = self.turn.keep_turns or 0
            return self.transcript.to_sum_up(self.agent.history, keep_turns=keep)
        return self.transcript.to_sum_up(self.turn.window_under(self.agent), keep_turns=0)

    async def moved_on(self) -> None:
        """Until turn or worker are to stop, or the turn is no longer where it was."""
        state = self.turn.state
        await self.interrupted(
            lambda turn: turn.cancel_requested or turn.pause_requested or turn.state != state
        )

    def meets(self, error: RunError) -> None:
        """An error that hooks are to hear of once it is stored."""
        if self.hooked is not None:
            self.hooked.meets(error)


def chance() -> float:
    """From 0 to 1, for delays that must differ."""
    return random.random()  # noqa: S311 - jitter is no secret
