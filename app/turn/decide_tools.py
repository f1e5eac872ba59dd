"""Rules for tools that ended.

A result is kept as soon as it is known, in the place its call has reserved. When the last call of
the round is answered the next model call begins in the same commit; until then free places are
filled with calls that have not begun. A cancellation or a pause keeps results that are known and
begins nothing more (case 124). A worker that stops begins nothing more either: a mark for a tool
that is never entered would make of "certainly not done" a "perhaps".
"""

from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.evolve import advance
from app.turn.state import OpenCall, RunningTools, Turn
from app.turn.steps import end_step, fill_slots, then_begin
from app.turn.transcript import Outcome, ToolResult


def tools_finished(
    turn: Turn, state: RunningTools, given: i.ToolsFinished, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """The results are kept, and what the round makes possible next begins (T45, T46, case 124)."""
    results = _results(state, given.finished)
    after = advance(turn, results)
    stopping = turn.cancel_requested or turn.pause_requested
    more = (
        ()
        if stopping or given.next_attempt_id is None
        else fill_slots(after, turn.limits_under(agent), state.attempt_id)
    )
    if more or any(call.in_flight for call in after.open_calls):
        return (*results, *more)
    ended = (*results, end_step(turn))
    if given.next_attempt_id is None and not stopping:
        return ended
    return then_begin(turn, ended, agent, given.next_attempt_id or state.attempt_id, at=at)


def _results(state: RunningTools, finished: tuple[i.FinishedCall, ...]) -> tuple[e.Event, ...]:
    """In declared order, whatever the order of arrival; unknown and closed calls are left out."""
    by_id = {call.call_id: call for call in finished}
    return tuple(
        _result(call, by_id[call.call_id])
        for call in state.calls
        if call.in_flight and call.call_id in by_id
    )


def _result(call: OpenCall, finished: i.FinishedCall) -> e.Event:
    result = ToolResult(
        call_id=call.call_id,
        tool_name=call.tool_name,
        outcome=finished.outcome,
        content=finished.content,
    )
    if finished.outcome is Outcome.COMPLETED:
        return e.ToolCompleted(position=call.position, result=result)
    return e.ToolFailed(position=call.position, result=result)
