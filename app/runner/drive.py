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
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import structlog

from app.ports import (
    AgentCatalog,
    Claim,
    ClaimedTurn,
    ClaimLost,
    LoadedAgent,
    NewId,
    RunError,
    StoreUnavailable,
    TurnStore,
    Wakeups,
)
from app.runner.asked_calls import AskedCalls
from app.runner.commit import TurnWriter
from app.runner.endings import EndedCall
from app.runner.exact_agent import agent_of, nobody
from app.runner.guarding import guarded
from app.runner.hooked_run import HookedRun
from app.runner.hooks import Crashed
from app.runner.judging import Judge
from app.runner.live_text import OpenAnswer
from app.runner.model_call import CallEnding, ModelCaller
from app.runner.tasks import unless
from app.runner.tool_calls import ToolRound
from app.runner.transcript import Transcript
from app.turn import inputs as i
from app.turn.evolve_calls import asked_at
from app.turn.failures import RequestRefused
from app.turn.ids import AttemptId, FailureId
from app.turn.journal import JournalError
from app.turn.next_step import CallModel, RecoverLostStep, Rest, RunTools, next_step
from app.turn.state import Turn
from app.turn.states import CallingModel, RunningTools

_LOOK_SECONDS = 1.5
"""How often a running model call looks for a cancellation when no hint comes."""

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

    async def drive(self, held: ClaimedTurn, stopping: asyncio.Event) -> bool:
        """Drive a turn until it rests, or until `stopping` is set; whether it rests.

        At rest the claim has been given up by the last commit. After a stop it has not: tools in
        flight have been let end within their grace, and nothing more was begun. A model call is
        dropped, and so is a tool that outlasts its grace: the turn is then left with a begun step,
        which whoever claims it next takes for lost: it is.

        Raises:
            ClaimLost: the turn is another worker's now.
            StoreUnavailable, OutcomeUnknown: the database is away; the claim will run out.
        """
        loaded = agent_of(self.catalog, held.turn)
        if loaded is None:
            loaded = nobody(held.turn)
        transcript = await Transcript.load(self.store, held.turn)
        drive = _Drive(self, held, loaded, transcript, stopping)
        try:
            return await drive.run()
        finally:
            await drive.close()


class _Drive:
    """One turn in the hands of one worker."""

    def __init__(
        self,
        driver: Driver,
        held: ClaimedTurn,
        loaded: LoadedAgent,
        transcript: Transcript,
        stopping: asyncio.Event,
    ) -> None:
        self._driver = driver
        self._turn = held.turn
        self._claim: Claim = held.claim
        self._agent = loaded.agent
        hooks, store = loaded.hooks, driver.store
        self._hooked = None if hooks is None else HookedRun(hooks, store, lambda: self._turn)
        tools = guarded(loaded.tools)
        self._tools = tools if self._hooked is None else self._hooked.around(tools)
        self._judge = Judge(loaded)
        self._forms = loaded.forms
        self._output = loaded.output
        self._transcript = transcript
        self._stopping = stopping
        self._announced: set[AttemptId] = set()
        self._round: ToolRound | None = None
        self._asked = AskedCalls(store)
        self._claim_is_given_up = False
        self._fruitless = 0
        self._grace_ends_at: float | None = None

    async def run(self) -> bool:
        """Step after step until the turn rests or the worker stops; whether the claim went with it.

        Raises:
            ClaimLost: the turn is another worker's now.
        """
        while not self._stopping.is_set() or self._lets_tools_end():
            if self._is_begun_here():
                given = await self._perform()
            else:
                begin = self._next_begin()
                if begin is None:
                    await self._told(HookedRun.tell_of_rest)
                    return self._claim_is_given_up
                given = await self._before(begin)
            if given is not None:
                await self._report(self._unless_stuck(given))
                await self._told(HookedRun.tell_of_error)
        return False

    def _unless_stuck(self, given: i.Report) -> i.Report:
        """The report; after many in a row that brought nothing the turn fails instead.

        Once is a clock that was set back a little. For ever would be a fault of ours, which must
        not keep a worker busy.

        Raises:
            JournalError: not even that brings anything.
        """
        if self._fruitless < _MOST_FRUITLESS:
            return given
        if self._fruitless > _MOST_FRUITLESS:
            wrong = f"nothing begins in turn {self._turn.identity.turn_id!r}"
            raise JournalError(wrong)
        _log.error("nothing_begins", turn_id=self._turn.identity.turn_id)
        return i.StepCrashed(attempt_id=None)

    async def close(self) -> None:
        """Ends what still runs of the open round; nothing is stored of it."""
        if self._round is not None:
            await self._round.close()

    def _lets_tools_end(self) -> bool:
        """Whether, a stop being asked for, tools of ours are in flight and still have time."""
        has_time = self._grace_ends_at is None or self._grace_ends_at > _now()
        return has_time and isinstance(self._turn.state, RunningTools) and self._is_begun_here()

    def _is_begun_here(self) -> bool:
        return self._turn.attempt_in_flight in self._announced

    def _next_begin(self) -> i.Report | None:
        """The begin to write down; `None` when the turn rests, if only until a retry."""
        if self._claim_is_given_up:
            return None
        match next_step(self._turn, at=self._driver.writer.clock()):
            case Rest():
                return None
            case RecoverLostStep(attempt_id=lost):
                return i.StepLost(attempt_id=lost, next_attempt_id=self._announce())
            case CallModel() | RunTools():
                return i.BeginStep(attempt_id=self._announce())

    async def _report(self, given: i.Report) -> None:
        written = await self._driver.writer.report(self._turn, given, self._agent, self._claim)
        self._turn = written.turn
        self._fruitless = 0 if written.events or written.raced else self._fruitless + 1
        self._claim_is_given_up = bool(written.events) and not self._turn.is_at_work
        if self._hooked is not None:
            self._hooked.sees(written.events)
        if written.raced:
            await self._look_anew()
            return
        self._transcript.add(written.messages)
        self._asked.sees(written.events)

    async def _look_anew(self) -> None:
        """Others have changed the turn, so that what is remembered of it may be incomplete."""
        self._transcript = await Transcript.load(self._driver.store, self._turn)
        self._asked.forget()

    def _announce(self) -> AttemptId:
        attempt_id = AttemptId(self._driver.new_id("att"))
        self._announced.add(attempt_id)
        return attempt_id

    async def _perform(self) -> i.Report | None:
        """Do the step in flight; `None` when it was dropped: look at the turn anew."""
        if self._hooked is not None and self._hooked.is_due:
            return await self._opened(self._hooked)
        match self._turn.state:
            case CallingModel(attempt_id=attempt_id):
                return await self._call_model(attempt_id)
            case RunningTools() as state:
                return await self._run_tools(state)
            case _:
                return None

    # --- Hooks -----------------------------------------------------------------------------------

    async def _before(self, begin: i.Report) -> i.Report | None:
        """Hooks come before a step is begun, so that nothing is marked that they keep from being.

        A lost step is first brought to where nothing is in flight. Calls are judged behind the
        hooks, so that a policy is not asked for a run that does not begin.
        """
        if self._hooked is not None and self._hooked.is_due:
            if isinstance(begin, i.StepLost):
                return replace(begin, next_attempt_id=None)
            return await self._opened(self._hooked)
        if isinstance(begin, i.BeginStep) and self._turn.open_calls:
            return await self._judged(begin)
        return begin

    async def _judged(self, begin: i.BeginStep) -> i.Report | None:
        """The begin with what its calls need; `None`: look at the turn anew."""
        if not await self._find_out():
            return None
        return replace(begin, judged=self._judge.known(self._turn))

    async def _find_out(self) -> bool:
        """What calls need that are not judged yet; whether it was not dropped."""
        if not self._judge.is_due(self._turn):
            return True
        arguments = await self._asked.arguments(self._turn, asked_at(self._turn))
        judging = self._judge.judge(self._turn, arguments)
        return await unless(judging, self._moved_on(), self._stopping.wait()) is not None

    async def _opened(self, hooked: HookedRun) -> i.Report | None:
        """What hooks object to the run as it goes on; `None`: look at the turn anew."""
        opened = await unless(hooked.open(), self._moved_on(), self._stopping.wait())
        return None if opened is None else opened.result

    async def _moved_on(self) -> None:
        """Until the turn is to be stopped, or is no longer where it was."""
        state = self._turn.state
        await self._seen(
            lambda turn: turn.cancel_requested or turn.pause_requested or turn.state != state
        )

    async def _told(self, tell: Callable[[HookedRun], Coroutine[Any, Any, None]]) -> None:
        if self._hooked is not None:
            await unless(tell(self._hooked), self._stopping.wait())

    def _meets(self, error: RunError) -> None:
        if self._hooked is not None:
            self._hooked.meets(error)

    # --- The model -------------------------------------------------------------------------------

    async def _call_model(self, attempt_id: AttemptId) -> i.Report | None:
        answer = OpenAnswer(attempt_id=attempt_id, started_version=self._turn.version)

        async def store_text() -> None:
            await self._report(
                i.ModelWrote(attempt_id=attempt_id, text=answer.text, reasoning=answer.reasoning)
            )

        call = self._driver.caller.call(
            self._turn.identity.turn_id,
            self._agent,
            self._transcript.bodies(),
            attempt=self._turn.counters.model_attempts,
            answer=answer,
            store_text=store_text,
            hooks=None if self._hooked is None else self._hooked.hooks,
        )
        ended = await unless(call, self._overtaken(attempt_id), self._stopping.wait())
        if ended is not None:
            return self._ending(attempt_id, answer, ended.result)
        if self._turn.cancel_requested:
            return i.StepAbandoned(attempt_id=attempt_id)
        return None

    def _ending(self, attempt_id: AttemptId, answer: OpenAnswer, ending: CallEnding) -> i.Report:
        match ending:
            case RequestRefused():
                self._meets(ending)
            case Crashed(error=error):
                self._meets(error)
            case _:
                pass
        ended = EndedCall(
            attempt_id=attempt_id,
            next_attempt_id=self._announce(),
            failure_id=FailureId(self._driver.new_id("fail")),
            taken_call_ids=self._transcript.call_ids,
            output=self._output,
            chance=_chance(),
            received=answer,
        )
        return ended.report(ending)

    async def _overtaken(self, attempt_id: AttemptId) -> None:
        """Until the turn's cancellation is asked for, or the attempt is no longer in flight."""
        await self._seen(lambda turn: turn.cancel_requested or turn.attempt_in_flight != attempt_id)

    async def _seen(self, is_news: Callable[[Turn], bool]) -> None:
        """Until the stored turn, looked at again and again, is news."""
        turn_id = self._turn.identity.turn_id
        with self._driver.wakeups.watch(turn_id) as wakeup:
            while not is_news(self._turn):
                await wakeup.wait(_LOOK_SECONDS)
                with suppress(StoreUnavailable):
                    found = await self._driver.store.load(turn_id)
                    if found and found.version > self._turn.version:  # text may be stored meanwhile
                        self._turn = found

    # --- Tools -----------------------------------------------------------------------------------

    async def _run_tools(self, state: RunningTools) -> i.Report | None:
        seen = self._turn.version
        try:
            finished = await self._some_finished(state)
        except (StoreUnavailable, ClaimLost):
            raise
        except Exception as error:  # noqa: BLE001 - a tool is foreign code
            self._meets(error)
            _log.exception("tool_crashed", turn_id=self._turn.identity.turn_id)
            return i.StepCrashed(attempt_id=state.attempt_id)
        if self._turn.version > seen:
            await self._look_anew()
        elif not (finished or self._judge.is_due(self._turn)):
            return None
        if not (finished or await self._find_out()):
            return None
        return i.ToolsFinished(
            attempt_id=state.attempt_id,
            finished=finished,
            next_attempt_id=None if self._stopping.is_set() else self._announce(),
            chance=_chance(),
            judged=self._judge.known(self._turn),
        )

    async def _some_finished(self, state: RunningTools) -> tuple[i.FinishedCall, ...]:
        tools = await self._round_of(state)
        tools.start_marked(state)
        if self._judge.is_due(self._turn):
            return ()
        ended = await unless(
            tools.some_finished(), self._stopped_and_out_of_grace(), *self._answers()
        )
        return () if ended is None else ended.result

    def _answers(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Until somebody answers a call that waits while others run (C28): it may be due now."""
        waiting = self._turn.waiting_calls
        if waiting:
            yield self._seen(lambda turn: turn.waiting_calls != waiting)

    async def _round_of(self, state: RunningTools) -> ToolRound:
        if self._round is None or self._round.asked_at != state.asked_at:
            arguments = await self._asked.arguments(self._turn, state.asked_at)
            self._round = ToolRound(
                self._turn.identity.turn_id, state.asked_at, arguments, self._tools, self._forms
            )
        return self._round

    async def _stopped_and_out_of_grace(self) -> None:
        await self._stopping.wait()
        if self._grace_ends_at is None:
            self._grace_ends_at = _now() + self._driver.grace_seconds
        await asyncio.sleep(self._grace_ends_at - _now())


def _now() -> float:
    return asyncio.get_running_loop().time()


def _chance() -> float:
    return random.random()  # noqa: S311 - jitter is no secret
