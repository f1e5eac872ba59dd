"""The one loop that drives a turn.

    ask what is next; if the turn rests, stop;
    otherwise write down that it begins, do it, write down how it ended.

Starting, continuing, retrying and going on after a crash all run through it, because the next step
is computed from the stored turn. The end of a step and the beginning of the next are one commit, so
the loop acts only when the turn that comes back from a commit has in flight the very attempt that
this commit announced. Anything else (a cancellation in between, another worker's begin) is news to
be asked about again.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

import structlog

from app.ports import AgentCatalog, ClaimedTurn, NewId, TurnStore, Wakeups
from app.runner.commit import TurnWriter
from app.runner.compacting import CompactionStep
from app.runner.exact_agent import exact_agent, nobody
from app.runner.hooked_run import HookedRun
from app.runner.in_hand import Terms, TurnInHand
from app.runner.lost_answer import lost_answer
from app.runner.model_call import ModelCaller
from app.runner.model_step import ModelStep
from app.runner.taking_over import lost_to, taken_over
from app.runner.tasks import unless
from app.runner.tool_step import ToolStep
from app.runner.transcript import Transcript
from app.turn import inputs as i
from app.turn.journal import JournalError
from app.turn.next_step import CallModel, RecoverLostStep, Rest, RunTools, next_step
from app.turn.states import CallingModel, Compacting, RunningTools
from app.turn.status import LostTo

_MOST_FRUITLESS = 20
"""Reports in a row that may bring nothing."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Drives claimed turns."""

    store: TurnStore
    writer: TurnWriter
    wakeups: Wakeups
    catalog: AgentCatalog
    caller: ModelCaller
    new_id: NewId
    grace_seconds: float
    """How long tools in flight may go on after a stop is asked for."""

    async def drive(
        self,
        held: ClaimedTurn,
        stopping: asyncio.Event,
        may_begin: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Drive a turn until it rests, or until `stopping` is set; whether it rests.

        At rest the claim has been given up by the last commit. After a stop it has not: tools in
        flight have been let end within their grace, and nothing more was begun. A model call is
        dropped, and a tool that outlasts its grace is ended. Where nobody can say what has come of
        it, the turn is left with a begun step, which whoever claims it next takes for lost: it is.

        Args:
            held: the turn, and the claim on it.
            stopping: set when the worker is to stop.
            may_begin: whether the claim is known to have been ours a short while ago; asked before
                a model is called or a tool entered.

        Raises:
            ClaimLost: the turn is another worker's now.
            StoreUnavailable, OutcomeUnknown: the database is away; the claim will run out.
        """
        loaded = exact_agent(self.catalog, held.turn.identity) or nobody(held.turn)
        turn = await taken_over(self.writer, held, loaded.agent)
        if turn is None:
            return True
        held = replace(held, turn=turn)
        transcript = await Transcript.load(self.store, turn, known=held.history)
        hand = TurnInHand(
            held,
            loaded,
            transcript,
            store=self.store,
            writer=self.writer,
            wakeups=self.wakeups,
            new_id=self.new_id,
            terms=Terms(stopping=stopping, may_begin=may_begin),
        )
        drive = _Drive(self, hand, lost_to(held))
        telling = asyncio.create_task(hand.tell_of_stop())
        try:
            return await drive.run()
        finally:
            telling.cancel()
            await drive.close()


class _Drive:
    """One turn in the hands of one worker."""

    def __init__(
        self,
        driver: Driver,
        hand: TurnInHand,
        lost_to: LostTo,
    ) -> None:
        self._hand = hand
        self._lost_to: LostTo = lost_to
        self._clock = driver.writer.clock
        self._store = driver.store
        self._stopping = hand.stopping
        self._model = ModelStep(hand, driver.caller)
        self._compaction = CompactionStep(hand, driver.caller.models)
        self._tools = ToolStep(hand, grace_seconds=driver.grace_seconds)

    async def run(self) -> bool:
        """Step after step until the turn rests or the worker stops; whether the claim went with it.

        Raises:
            ClaimLost: the turn is another worker's now.
        """
        hand = self._hand
        while not self._stopping.is_set() or self._tools.has_grace:
            if hand.is_begun_here:
                given = await self._perform()
            else:
                begin = await self._next_begin()
                if begin is None:
                    await self._told(HookedRun.tell_of_rest)
                    return hand.claim_is_given_up
                given = await self._before(begin)
            if given is not None:
                await hand.report(self._unless_stuck(given))
                await self._told(HookedRun.tell_of_error)
        return False

    async def close(self) -> None:
        """Ends what still runs of the open round; nothing is stored of it."""
        await self._tools.close()

    def _unless_stuck(self, given: i.Report) -> i.Report:
        """The report; after many in a row that brought nothing the turn fails instead.

        Once is a clock that was set back a little. For ever would be a fault of ours, which must
        not keep a worker busy.

        Raises:
            JournalError: not even that brings anything.
        """
        hand = self._hand
        if hand.fruitless < _MOST_FRUITLESS:
            return given
        if hand.fruitless > _MOST_FRUITLESS:
            wrong = f"nothing begins in turn {hand.turn.identity.turn_id!r}"
            raise JournalError(wrong)
        _log.error("nothing_begins", turn_id=hand.turn.identity.turn_id)
        return i.StepCrashed(attempt_id=None)

    async def _next_begin(self) -> i.Report | None:
        """The begin to write down; `None` when the turn rests, if only until a retry."""
        hand = self._hand
        if hand.claim_is_given_up:
            return None
        match next_step(hand.turn, at=self._clock()):
            case Rest():
                return None
            case RecoverLostStep(attempt_id=lost):
                text, reasoning = await lost_answer(self._store, hand.turn)
                return i.StepLost(
                    attempt_id=lost,
                    next_attempt_id=hand.announce(),
                    text=text,
                    reasoning=reasoning,
                    is_cut_off=lost == self._tools.cut_off,
                    cause=self._lost_to,
                )
            case CallModel() | RunTools():
                return i.BeginStep(attempt_id=hand.announce())

    async def _perform(self) -> i.Report | None:
        """Do the step in flight; `None` when it was dropped: look at the turn anew.

        Raises:
            ClaimLost: the turn may be another worker's, who goes on with it.
        """
        hand = self._hand
        hand.require_claim()
        if hand.hooked is not None and hand.hooked.is_due:
            return await self._opened(hand.hooked)
        match hand.turn.state:
            case CallingModel(attempt_id=attempt_id):
                return await self._model.run(attempt_id)
            case Compacting() as state:
                return await self._compaction.run(state)
            case RunningTools() as state:
                return await self._tools.run(state)
            case _:
                return None

    async def _before(self, begin: i.Report) -> i.Report | None:
        """Hooks come before a step is begun, so that nothing is marked that they keep from being.

        A lost step is first brought to where nothing is in flight, with what can be found out about
        its calls. Calls are judged behind the hooks, so that a policy is not asked for a run that
        does not begin.
        """
        hand = self._hand
        if isinstance(begin, i.StepLost):
            hooks_first = hand.hooked is not None and hand.hooked.is_due
            lost = replace(begin, next_attempt_id=None) if hooks_first else begin
            return await self._tools.looked_into(lost)
        if hand.hooked is not None and hand.hooked.is_due:
            return await self._opened(hand.hooked)
        if isinstance(begin, i.BeginStep) and hand.turn.open_calls:
            return await self._judged(begin)
        return begin

    async def _judged(self, begin: i.BeginStep) -> i.Report | None:
        """The begin with what its calls need; `None`: look at the turn anew."""
        if not await self._tools.find_out():
            return None
        return replace(begin, judged=self._tools.judged)

    async def _opened(self, hooked: HookedRun) -> i.Report | None:
        """What hooks object to the run as it goes on; `None`: look at the turn anew."""
        opened = await unless(hooked.open(), self._hand.moved_on())
        return None if opened is None else opened.result

    async def _told(self, tell: Callable[[HookedRun], Coroutine[Any, Any, None]]) -> None:
        if self._hand.hooked is not None:
            await unless(tell(self._hand.hooked), self._stopping.wait())
