"""Rules for tools that ended.

A result is kept as soon as it is known, in the place its call has reserved (T45).

    an error                  told to the model (T46), tried again later where the tool may run
                              again (T47), or the end of the turn (T48), as the tool says;
                              the calls behind it are given up where the tool says so (T49)
    the last call answered    the next model call begins in the same commit
    a question to the user    answered at once, asked when the round has ended (T43a)
    an approval or a form is needed first
                              its attempt has done nothing: the entry is given back (T42, case 103).
                              Opened at once where it is next, else put aside; a tool that asks for
                              an approval which it has fails the turn (case 97)
    until then                free places are filled with calls that have not begun
    only retries are left     the turn rests until the first of them is due
    cancellation, pause       known results are kept, nothing more begins (case 124); what outlasts
                              its grace is stopped: `cancelled` where nothing can have come of it,
                              else its end is not known (T53, `lost_tools`)
    a message that steers     likewise, and it is heard when nothing is in flight (case 92)
    the worker stops          likewise: a mark for a tool that is never entered would make of
                              "certainly not done" a "perhaps"
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent, Effect, OnError, ToolSpec
from app.turn.begin_tools import moves, next_to_open
from app.turn.blocking import given_up
from app.turn.evolve import advance
from app.turn.interruption import interrupted
from app.turn.judging import by_call, is_approved
from app.turn.limits import broken_limit
from app.turn.open_calls import OpenCall
from app.turn.opening import opened, wait_for
from app.turn.questions import told_to_the_model
from app.turn.retry import jittered
from app.turn.state import Turn
from app.turn.states import RunningTools
from app.turn.status import RoundFailure
from app.turn.steps import end_step, failed, then_begin
from app.turn.transcript import InterruptionReason, Outcome, ToolResult
from app.turn.waits import ApprovalNeeded

_RETRIES = frozenset({OnError.RETRY_THEN_FAIL, OnError.RETRY_THEN_MODEL})


def tools_finished(
    turn: Turn, state: RunningTools, given: i.ToolsFinished, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """The results are kept, and what the round makes possible next begins (T45, T46, case 124)."""
    results = tuple(_results(turn, state, given, agent, at))
    results = (*results, *given_up(turn, results, agent))
    failure = _failure(state, results)
    goes_on = failure is None and given.next_attempt_id is not None and not _is_to_stop(turn)
    answered = advance(turn, results)
    asks = _asks(answered, given, agent, at, goes_on=goes_on)
    results, after = (*results, *asks), advance(answered, asks)
    judged = by_call(given.judged)
    more = moves(after, agent, state.attempt_id, judged, at=at) if goes_on else ()
    if any(call.in_flight for call in advance(after, more).open_calls):
        return (*results, *more)
    ended = end_step(turn)
    if failure is not None and not turn.cancel_requested:
        return (*results, ended, *failed(after, failure))
    if given.next_attempt_id is None and not _is_told_to_stop(turn):
        return (*results, ended)
    next_id = given.next_attempt_id or state.attempt_id
    return (*results, *then_begin(after, (ended,), agent, next_id, at=at, judged=judged))


def _is_to_stop(turn: Turn) -> bool:
    return _is_told_to_stop(turn) or bool(turn.steering)


def _is_told_to_stop(turn: Turn) -> bool:
    return turn.cancel_requested or turn.pause_requested


def _failure(state: RunningTools, results: tuple[e.Event, ...]) -> RoundFailure | None:
    """Why the turn fails once nothing is in flight, if it does."""
    if state.is_failing:
        return state.failure
    fatal = (x for x in results if isinstance(x, e.ToolFailed) and x.fails_turn)
    first = next(fatal, None)
    return None if first is None else first.failure


def _asks(
    turn: Turn, given: i.ToolsFinished, agent: Agent, at: datetime, *, goes_on: bool
) -> tuple[e.Event, ...]:
    """What tools of the round ask for before they do anything, in declared order.

    It is opened where it would be opened next; a turn that stops first opens nothing.
    """
    needed = {call.call_id: call.needs for call in given.finished if call.needs is not None}
    asking = [call for call in turn.open_calls if call.in_flight and call.call_id in needed]
    waits = [wait_for(call, needed[call.call_id], agent, stage="tool") for call in asking]
    asides = tuple(
        e.ToolPutAside(call_id=call.call_id, wait=wait)
        for call, wait in zip(asking, waits, strict=True)
    )
    after = advance(turn, asides)
    if not goes_on or broken_limit(after, agent, at=at) is not None:
        return asides
    are_open = {call.call_id for call in next_to_open(after, agent)}
    return tuple(
        opened(call, wait, at=at) if call.call_id in are_open else aside
        for call, wait, aside in zip(asking, waits, asides, strict=True)
    )


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
        if call.in_flight and finished is not None and _asks_in_vain(call, finished):
            yield _asked_again(call)
        elif call.in_flight and finished is not None and finished.needs is None:
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
    if finished.outcome is Outcome.CANCELLED:
        return interrupted(call, Outcome.CANCELLED, InterruptionReason.CUT_OFF)
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


def _asks_in_vain(call: OpenCall, finished: i.FinishedCall) -> bool:
    needs = finished.needs
    return isinstance(needs, ApprovalNeeded) and is_approved(call, "tool", needs.fingerprint)


def _asked_again(call: OpenCall) -> e.ToolFailed:
    content = "The tool asks again for an approval that it has. It was not run any further."
    result = ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=Outcome.ERROR, content=content
    )
    return e.ToolFailed(
        position=call.position, result=result, fails_turn=True, failure="approval_loop"
    )


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
    if finished.outcome is Outcome.CANCELLED:
        return None
    may_run_again = spec.effect is not Effect.WRITES or finished.outcome is Outcome.NOT_STARTED
    return jittered(spec.retry, call.retries, chance) if may_run_again else None
