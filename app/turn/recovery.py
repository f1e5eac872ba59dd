"""What becomes of a step whose worker is gone.

A model call is made again: it has no effect of its own. What is stored of its text is kept as a
partial message, closed as unfinished, and the model is told once to begin again (T101). What had
been shown beyond that, or all of it where nothing is kept, is withdrawn (`discard_from`).

A call that never began runs, under every rule. A call that had begun may or may not have taken
effect; its tool's declared effect decides (turn semantics C1):

    reads        run again
    idempotent   run again under the same idempotency key
    writes       never run again: the model is told that the outcome is unknown

A call that waits for somebody is left as it is: a question is no crash, and what is outside is not
asked for twice (T107, T108, case 112).

With a message waiting that steers the turn nothing is run again: each of them is reported (T9).
The same in a round of which it is decided that the turn fails: it fails now (T48).
"""

from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent, Effect
from app.turn.evolve import advance
from app.turn.interruption import interrupted
from app.turn.open_calls import OpenCall
from app.turn.partial import cut_off
from app.turn.resume_notices import told_to_begin_again
from app.turn.state import Turn
from app.turn.states import CallingModel, RunningTools
from app.turn.steps import failed, then_begin
from app.turn.transcript import UNFINISHED, InterruptionReason, Outcome


def model_call_lost(
    turn: Turn, state: CallingModel, given: i.StepLost, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """The model is called again; what is stored of the lost answer is no answer (T101)."""
    had_text = state.text_stored > 0 or state.reasoning_stored > 0
    kept = () if turn.cancel_requested else _kept(turn, state, given, agent)
    recovered = e.StepRecovered(
        attempt_id=state.attempt_id,
        recovery="RETRY_RESPONSE" if had_text else "CALL_MODEL",
        discard_from=(len(given.text) if kept else 0) if had_text else None,
    )
    events: tuple[e.Event, ...] = (recovered, *kept)
    if not turn.pause_requested:  # else whoever resumes it says so
        events = (*events, *told_to_begin_again(advance(turn, events)))
    return _then_begin(turn, events, given, agent, at)


def _kept(
    turn: Turn, state: CallingModel, given: i.StepLost, agent: Agent
) -> tuple[e.ModelStopped, ...]:
    return cut_off(
        turn, state.attempt_id, agent, UNFINISHED, text=given.text, reasoning=given.reasoning
    )


def tools_lost(
    turn: Turn, state: RunningTools, given: i.StepLost, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """Each open call goes by its rule: run, run again, or reported as unknown (T103, T104)."""
    recovered = e.StepRecovered(
        attempt_id=state.attempt_id,
        recovery="RECOVER_TOOLS",
        calls=foreseen(turn),
    )
    unknown = tuple(
        interrupted(call, Outcome.UNKNOWN, InterruptionReason.WORKER_LOST)
        for call in state.calls
        if _is_reported(call, turn)
    )
    events: tuple[e.Event, ...] = (recovered, *unknown)
    if state.is_failing and not turn.cancel_requested:
        return (*events, *failed(advance(turn, events), state.failure))
    return _then_begin(turn, events, given, agent, at)


def _then_begin(
    turn: Turn, events: tuple[e.Event, ...], given: i.StepLost, agent: Agent, at: datetime
) -> tuple[e.Event, ...]:
    if given.next_attempt_id is None:
        return events
    return then_begin(turn, events, agent, given.next_attempt_id, at=at)


def _is_reported(call: OpenCall, turn: Turn) -> bool:
    is_failing = isinstance(turn.state, RunningTools) and turn.state.is_failing
    goes_no_further = is_failing or bool(turn.steering)
    return call.may_have_run and (call.effect is Effect.WRITES or goes_no_further)


def _rule(call: OpenCall, turn: Turn) -> e.RecoveredCall:
    if not call.may_have_run:
        return e.RecoveredCall(call_id=call.call_id, rule="run")
    if _is_reported(call, turn):
        return e.RecoveredCall(call_id=call.call_id, rule="report")
    if call.effect is Effect.READS:
        return e.RecoveredCall(call_id=call.call_id, rule="rerun")
    return e.RecoveredCall(call_id=call.call_id, rule="rerun_idempotent")


def foreseen(turn: Turn) -> tuple[e.RecoveredCall, ...]:
    """What becomes of each open call when the turn goes on, in declared order.

    One that waits for somebody is not among them: nothing becomes of it.
    """
    return tuple(_rule(call, turn) for call in turn.open_calls if call.wait is None)
