"""Running the tools of one round.

Every call that has its begin mark runs as a task of its own. Results are handed over as they come:
at once when a writing call has ended, because nothing may stand between an effect and its record;
otherwise after a moment, so that calls which end together cost one commit.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from app.ports import FrozenForm, Tool, ToolContext, ToolOutput
from app.runner.tasks import let_go
from app.turn.agent import Effect
from app.turn.ids import CallId, TurnId, idempotency_key
from app.turn.inputs import FinishedCall
from app.turn.open_calls import OpenCall
from app.turn.states import RunningTools
from app.turn.transcript import Outcome

_TOGETHER_SECONDS = 0.005
"""Calls that end within this time of one another are stored together."""


_DEAF_SECONDS = 1.0
"""How long a tool may take to end once it is cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """What came of calls that were ended."""

    finished: tuple[FinishedCall, ...]
    """Those of which it is known."""
    is_unsure: bool
    """Whether there are others."""


class ToolRound:
    """The tasks of one round; `close` ends those that are left."""

    def __init__(
        self,
        turn_id: TurnId,
        asked_at: int,
        arguments: Mapping[CallId, str],
        tools: Mapping[str, Tool],
        forms: Mapping[str, FrozenForm],
        stoppable: AbstractSet[str],
        require_claim: Callable[[], None],
    ) -> None:
        self.asked_at = asked_at
        self._turn_id = turn_id
        self._arguments = arguments
        self._tools = tools
        self._forms = forms
        self._stoppable = stoppable
        self._require_claim = require_claim
        self._tasks: dict[asyncio.Task[ToolOutput], OpenCall] = {}

    def start_marked(self, state: RunningTools) -> None:
        """Start every call that is marked as begun and not running yet."""
        running = {call.call_id for call in self._tasks.values()}
        for call in state.calls:
            if call.in_flight and call.call_id not in running:
                self._tasks[asyncio.create_task(self._run(call), name=call.call_id)] = call

    async def some_finished(self) -> tuple[FinishedCall, ...]:
        """Wait until at least one call has ended; those that ended, in no particular order."""
        done, pending = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        if pending and not any(self._tasks[task].effect is Effect.WRITES for task in done):
            more, _ = await asyncio.wait(pending, timeout=_TOGETHER_SECONDS)
            done |= more
        return tuple(_finished(self._tasks.pop(task).call_id, task.result()) for task in done)

    async def cut_off(self) -> CutOff:
        """End what is still running, and say of which calls it is known what came of them.

        Raises:
            Exception: what a tool has raised that is no answer of it.
        """
        tasks = dict(self._tasks)
        self._tasks.clear()
        await let_go(tasks, within_seconds=_DEAF_SECONDS)
        known = {call.call_id: self._known(task, call) for task, call in tasks.items()}
        finished = tuple(each for each in known.values() if each is not None)
        return CutOff(finished=finished, is_unsure=None in known.values())

    def _known(self, task: asyncio.Task[ToolOutput], call: OpenCall) -> FinishedCall | None:
        """How it has ended; `None`: stopping our side does not show that nothing was done.

        What reads does nothing. What is idempotent may be made again, once it is over for certain.
        """
        if task.done() and not task.cancelled():
            return _finished(call.call_id, task.result())
        is_over = task.done() and call.tool_name in self._stoppable
        harmless = {Effect.READS, Effect.IDEMPOTENT} if is_over else {Effect.READS}
        if call.effect not in harmless:
            return None
        return FinishedCall(call_id=call.call_id, outcome=Outcome.CANCELLED, content="")

    async def close(self) -> None:
        """Cancel what is still running and wait, not for ever, until it is gone."""
        tasks = list(self._tasks)
        self._tasks.clear()
        await let_go(tasks, within_seconds=_DEAF_SECONDS)

    async def _run(self, call: OpenCall) -> ToolOutput:
        """Enter the tool.

        Raises:
            ClaimLost: the process stood still between the mark and this, and others may go on.
        """
        context = ToolContext(
            turn_id=self._turn_id,
            call_id=call.call_id,
            idempotency_key=idempotency_key(self._turn_id, call.call_id),
            attempt=call.attempt,
            is_replay=call.attempt > 1,
            previous_error=call.previous_error,
            scheduled_at=call.scheduled_at,
            tool_name=call.tool_name,
            approvals=call.approvals,
            submissions=tuple(json.loads(data) for data in call.data),
            resume=call.resume,
            resume_count=call.resumes,
            forms=self._forms,
        )
        self._require_claim()
        return await self._tools[call.tool_name].run(self._arguments[call.call_id], context)


def _finished(call_id: CallId, output: ToolOutput) -> FinishedCall:
    return FinishedCall(
        call_id=call_id,
        outcome=output.outcome,
        content=output.content,
        question=output.question,
        needs=output.needs,
    )
