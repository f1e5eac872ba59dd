"""Rules for the tool calls that an answer asks for (T27, ZA-21).

They are stored with the answer before any of them runs. One whose tool cannot be entered at all has
its error at once; the others begin in the same commit.
"""

from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent, Effect, ToolSpec
from app.turn.answer_events import completed, pieces, stopped
from app.turn.blocking import given_up
from app.turn.evolve import advance
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.steps import end_step, then_begin
from app.turn.stored_calls import as_stored
from app.turn.transcript import Outcome, ToolCall, ToolResult


def with_calls(
    turn: Turn, state: CallingModel, given: i.ModelAnswered, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """The answer is stored, and its tools begin."""
    calls = as_stored(given.answer.tool_calls, given.taken_call_ids, given.attempt_id)
    first_result = turn.next_position + 1
    requested = tuple(
        _requested(call, agent.tool(call.tool_name), first_result + n)
        for n, call in enumerate(calls)
    )
    asked: tuple[e.Event, ...] = (
        *pieces(state, given.answer.text, given.answer.reasoning),
        completed(turn, given, agent, calls=calls),
        *stopped(given, ()),
        *requested,
    )
    failed_calls = _unusable(calls, agent, first_result)
    barred = given_up(advance(turn, asked), failed_calls, agent) if failed_calls else ()
    events = (*asked, *failed_calls, *barred, end_step(turn))
    return then_begin(turn, events, agent, given.next_attempt_id, at=at)


def _requested(call: ToolCall, spec: ToolSpec | None, position: int) -> e.ToolRequested:
    return e.ToolRequested(
        call_id=call.call_id,
        tool_name=call.tool_name,
        effect=Effect.WRITES if spec is None else spec.effect,
        position=position,
    )


def _unusable(
    calls: tuple[ToolCall, ...], agent: Agent, first_result: int
) -> tuple[e.ToolFailed, ...]:
    """Error results for calls whose tool cannot be entered at all (ZA-21)."""
    return tuple(
        e.ToolFailed(position=first_result + n, result=_error_result(call, problem))
        for n, call in enumerate(calls)
        if (problem := _problem(call, agent)) is not None
    )


def _problem(call: ToolCall, agent: Agent) -> str | None:
    if call.problem is None and agent.tool(call.tool_name) is None:
        return f"There is no tool named {call.tool_name!r}."
    return call.problem


def _error_result(call: ToolCall, problem: str) -> ToolResult:
    return ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=Outcome.ERROR, content=problem
    )
