"""Rules for tools that ended.

A result is kept as soon as it is known, in the place its call has reserved (T45).

    an error                  told to the model (T46), tried again later where the tool may run
                              again (T47), or the end of the turn (T48), as the tool says;
                              the calls behind it are given up where the tool says so (T49)
    the last call answered    the next model call begins in the same commit
    a question to the user    answered at once, asked when the round has ended (T43a)
    until then                free places are filled with calls that have not begun
    only retries are left     the turn rests until the first of them is due
    cancellation, pause       known results are kept, nothing more begins (case 124)
    a message that steers     likewise, and it is heard when nothing is in flight (case 92)
    the worker stops          likewise: a mark for a tool that is never entered would make of
                              "certainly not done" a "perhaps"
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent, Effect, OnError, ToolSpec
from app.turn.blocking import given_up
from app.turn.evolve import advance
from app.turn.open_calls import OpenCall
from app.turn.questions import told_to_the_model
from app.turn.retry import jittered
from app.turn.state import RunningTools, Turn
from app.turn.steps import end_step, failed, fill_slots, then_begin
from app.turn.transcript import Outcome, ToolResult

_RETRIES = frozenset({OnError.RETRY_THEN_FAIL, OnError.RETRY_THEN_MODEL})


def tools_finished(
    turn: Turn, state: RunningTools, given: i.ToolsFinished, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """The results are kept, and what the round makes possible next begins (T45, T46, case 124)."""
    ended = tuple(_results(turn, state, given, agent, at))
    results = (*ended, *given_up(turn, ended, agent))
    after = advance(turn, results)
    is_failing = state.is_failing or any(_fails_turn(event) for event in results)
    more = (
        ()
        if is_failing or _begins_nothing_more(turn) or given.next_attempt_id is None
        else fill_slots(after, agent, state.attempt_id, at=at)
    )
    if more or any(call.in_flight for call in after.open_calls):
        return (*results, *more)
    events = (*results, end_step(turn))
    if is_failing and not turn.cancel_requested:
        return (*events, *failed(after, "tool_failed"))
    if given.next_attempt_id is None and not _is_told_to_stop(turn):
        return events
    return then_begin(turn, events, agent, given.next_attempt_id or state.attempt_id, at=at)


def _begins_nothing_more(turn: Turn) -> bool:
    return _is_told_to_stop(turn) or bool(turn.steering)


def _is_told_to_stop(turn: Turn) -> bool:
    return turn.cancel_requested or turn.pause_requested


def _fails_turn(event: e.Event) -> bool:
    return isinstance(event, e.ToolFailed) and event.fails_turn


def _results(
    turn: Turn, state: RunningTools, given: i.ToolsFinished, agent: Agent, at: datetime
) -> Iterator[e.Event]:
    """In declared order, whatever the order of arrival; unknown and closed calls are left out.

    Where the turn is about to end no attempt is followed by another (case 125).
    """
    is_ending = turn.cancel_requested or state.is_failing
    by_id = {call.call_id: call for call in given.finished}
    for call in state.calls:
        finished = by_id.get(call.call_id)
        if call.in_flight and finished is not None:
            spec = agent.tool(call.tool_name)
            delay = None if is_ending else _delay(call, finished, spec, given.chance)
            yield _result(call, finished, spec, None if delay is None else at + delay)


def _result(
    call: OpenCall, finished: i.FinishedCall, spec: ToolSpec | None, retry_at: datetime | None
) -> e.Event:
    if finished.question is not None:
        return _asked(call, finished.question)
    result = ToolResult(
        call_id=call.call_id,
        tool_name=call.tool_name,
        outcome=finished.outcome,
        content=finished.content,
    )
    if finished.outcome is Outcome.COMPLETED:
        return e.ToolCompleted(position=call.position, result=result)
    if retry_at is not None:
        return e.ToolAttemptFailed(
            call_id=call.call_id,
            tool_name=call.tool_name,
            attempt=call.attempt,
            error=finished.content,
            retry_at=retry_at,
        )
    fails = spec is not None and spec.on_error in {OnError.FAIL_TURN, OnError.RETRY_THEN_FAIL}
    return e.ToolFailed(position=call.position, result=result, fails_turn=fails)


def _asked(call: OpenCall, question: str) -> e.ToolCompleted:
    result = ToolResult(
        call_id=call.call_id,
        tool_name=call.tool_name,
        outcome=Outcome.COMPLETED,
        content=told_to_the_model(question),
    )
    return e.ToolCompleted(position=call.position, result=result, question=question)


def _delay(
    call: OpenCall, finished: i.FinishedCall, spec: ToolSpec | None, chance: float
) -> timedelta | None:
    """How long until the next attempt; `None` when this one's error is the call's result.

    Only what may run again is tried again, or what says itself that nothing was done (`NotDone`).
    """
    if spec is None or spec.on_error not in _RETRIES or call.retries >= spec.retry.max_retries:
        return None
    may_run_again = spec.effect is not Effect.WRITES or finished.outcome is Outcome.NOT_STARTED
    return jittered(spec.retry, call.retries, chance) if may_run_again else None
