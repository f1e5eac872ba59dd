"""A round of tools as a step of a turn: its calls run, and those that have ended are reported."""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import Any

import structlog

from app.ports import ClaimLost, StoreUnavailable, is_stoppable
from app.runner.guarding import guarded
from app.runner.in_hand import TurnInHand, chance
from app.runner.judging import Judge
from app.runner.probing import looked_into
from app.runner.tasks import unless
from app.runner.tool_calls import ToolRound
from app.turn import inputs as i
from app.turn.evolve_calls import asked_at
from app.turn.ids import AttemptId
from app.turn.lost_tools import looked_at
from app.turn.state import Turn
from app.turn.states import RunningTools
from app.turn.waits import JudgedCall

_log = structlog.get_logger(__name__)


class ToolStep:
    """Judges and runs the calls of one drive."""

    def __init__(self, hand: TurnInHand, *, grace_seconds: float) -> None:
        self._hand = hand
        self._stopping = hand.stopping
        self._grace_seconds = grace_seconds
        self._grace_ends_at: float | None = None
        self.cut_off: AttemptId | None = None
        """The step whose tools have outlasted their grace, and not all with a known end."""
        self._judge = Judge(hand.loaded)
        tools = guarded(hand.loaded.tools)
        self._tools = tools if hand.hooked is None else hand.hooked.around(tools)
        self._stoppable = frozenset(
            n for n, tool in hand.loaded.tools.items() if is_stoppable(tool)
        )
        self._round: ToolRound | None = None

    @property
    def has_grace(self) -> bool:
        """Whether, a stop being asked for, tools of ours are in flight: they still have time."""
        hand = self._hand
        return isinstance(hand.turn.state, RunningTools) and hand.is_begun_here

    @property
    def judged(self) -> tuple[JudgedCall, ...]:
        """What the open calls need, as far as that is known."""
        return self._judge.known(self._hand.turn)

    async def run(self, state: RunningTools) -> i.Report | None:
        """Which calls have ended; `None` when the wait was dropped: look at the turn anew.

        Raises:
            StoreUnavailable, ClaimLost: the turn can no longer be looked after here.
        """
        hand = self._hand
        seen = hand.turn.version
        try:
            finished = await self._some_finished(state)
        except (StoreUnavailable, ClaimLost):
            raise
        except Exception as error:  # noqa: BLE001 - a tool is foreign code
            hand.meets(error)
            _log.exception("tool_crashed", turn_id=hand.turn.identity.turn_id)
            return i.StepCrashed(attempt_id=state.attempt_id)
        if hand.turn.version > seen:
            await hand.look_anew()
        elif not (finished or self._is_judging_due):
            return None
        if self.cut_off == state.attempt_id and not finished:
            return None
        if not (finished or self._stopping.is_set() or await self.find_out()):
            return None
        return i.ToolsFinished(
            attempt_id=state.attempt_id,
            finished=finished,
            next_attempt_id=None if self._stopping.is_set() else hand.announce(),
            chance=chance(),
            judged=self.judged,
        )

    @property
    def _is_judging_due(self) -> bool:
        return not self._stopping.is_set() and self._judge.is_due(self._hand.turn)

    async def find_out(self) -> bool:
        """What calls need that are not judged yet; whether it was not dropped."""
        hand = self._hand
        if not self._judge.is_due(hand.turn):
            return True
        arguments = await hand.asked.arguments(hand.turn, asked_at(hand.turn))
        judging = self._judge.judge(hand.turn, arguments)
        return await unless(judging, hand.moved_on()) is not None

    async def looked_into(self, lost: i.StepLost) -> i.StepLost | None:
        """The loss, with what is known of its calls; `None`: look at the turn anew.

        A cancellation waits for no probe: nothing is run again, whatever one might say.
        """
        hand = self._hand
        calls = looked_at(hand.turn)
        if not calls:
            return lost
        is_cancelled = hand.turn.cancel_requested
        looking = looked_into(
            hand.turn.identity.turn_id,
            calls,
            await hand.asked.arguments(hand.turn, asked_at(hand.turn)),
            hand.loaded.tools,
            probes=not is_cancelled,
        )
        news = hand.interrupted(
            lambda turn: (
                turn.attempt_in_flight != lost.attempt_id or turn.cancel_requested != is_cancelled
            )
        )
        found = await unless(looking, news)
        return None if found is None else replace(lost, looked_into=found.result)

    async def close(self) -> None:
        """Ends what still runs of the open round; nothing is stored of it."""
        if self._round is not None:
            await self._round.close()

    async def _some_finished(self, state: RunningTools) -> tuple[i.FinishedCall, ...]:
        tools = await self._round_of(state)
        tools.start_marked(state)
        if self._is_judging_due:
            return ()
        ended = await unless(tools.some_finished(), self._out_of_grace(), *self._answers())
        if ended is not None:
            return ended.result
        if self._grace_ends_at is None or self._grace_ends_at > _now():
            return ()
        cut = await tools.cut_off()
        if cut.is_unsure:
            self.cut_off = state.attempt_id
            self._hand.disown(state.attempt_id)
        return cut.finished

    def _answers(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Until somebody answers a call that waits while others run (C28): it may be due now."""
        waiting = self._hand.turn.waiting_calls
        if waiting:
            yield self._hand.seen(lambda turn: turn.waiting_calls != waiting)

    async def _round_of(self, state: RunningTools) -> ToolRound:
        hand = self._hand
        if self._round is None or self._round.asked_at != state.asked_at:
            arguments = await hand.asked.arguments(hand.turn, state.asked_at)
            self._round = ToolRound(
                hand.turn.identity.turn_id,
                state.asked_at,
                arguments,
                self._tools,
                hand.loaded.forms,
                self._stoppable,
                hand.require_claim,
            )
        return self._round

    async def _out_of_grace(self) -> None:
        """Until tools in flight have had their time, from the moment a stop is seen on (T53)."""
        if self._grace_ends_at is None:
            await self._hand.interrupted(_is_to_stop)
            self._grace_ends_at = _now() + self._grace_seconds
        await asyncio.sleep(self._grace_ends_at - _now())


def _is_to_stop(turn: Turn) -> bool:
    return turn.cancel_requested or turn.pause_requested


def _now() -> float:
    return asyncio.get_running_loop().time()
