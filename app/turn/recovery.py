"""What becomes of a step whose worker is gone, or has ended it itself.

A model call is made again: it has no effect of its own. What is stored of its text is kept as a
partial message, closed as unfinished, and the model is told once to begin again (T101). What had
been shown beyond that, or all of it where nothing is kept, is withdrawn (`discard_from`).

The calls of a round go by the rules of `app.turn.lost_tools`.
"""

from datetime import datetime

from app.turn import events as e
from app.turn import inputs as i
from app.turn import lost_tools
from app.turn.agent import Agent
from app.turn.evolve import advance
from app.turn.partial import cut_off
from app.turn.resume_notices import told_to_begin_again
from app.turn.state import Turn
from app.turn.states import CallingModel, Compacting, RunningTools
from app.turn.status import LostTo
from app.turn.steps import failed, then_begin
from app.turn.transcript import UNFINISHED


def step_lost(
    turn: Turn,
    state: CallingModel | Compacting | RunningTools,
    given: i.StepLost,
    agent: Agent,
    *,
    at: datetime,
) -> tuple[e.Event, ...]:
    """What becomes of whatever step it is."""
    if isinstance(state, CallingModel):
        return model_call_lost(turn, state, given, agent, at=at)
    if isinstance(state, Compacting):
        return compaction_lost(turn, state, given, agent, at=at)
    return tools_lost(turn, state, given, agent, at=at)


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
        cause=lost_to(state, given),
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


def compaction_lost(
    turn: Turn, state: Compacting, given: i.StepLost, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """The summary is asked for again: nothing of it was stored, and it changes nothing else."""
    recovered = e.StepRecovered(
        attempt_id=state.attempt_id, recovery="CALL_MODEL", cause=lost_to(state, given)
    )
    return _then_begin(turn, (recovered,), given, agent, at)


def tools_lost(
    turn: Turn, state: RunningTools, given: i.StepLost, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """Each open call goes by its rule (T103, T104)."""
    decided = lost_tools.fates(turn, agent, given.looked_into)
    recovered = e.StepRecovered(
        attempt_id=state.attempt_id,
        recovery="RECOVER_TOOLS",
        calls=tuple(fate.told for fate in decided),
        cause=lost_to(state, given),
    )
    events: tuple[e.Event, ...] = (recovered, *lost_tools.results(decided, given, agent))
    if state.is_failing and not turn.cancel_requested:
        return (*events, *failed(advance(turn, events), state.failure))
    return _then_begin(turn, events, given, agent, at)


def lost_to(state: CallingModel | Compacting | RunningTools, given: i.StepLost) -> LostTo | None:
    """What the step was lost to; a pause in between does not make a death a shutdown.

    `None`: its worker is there, and has ended it.
    """
    if given.is_cut_off:
        return None
    return "crash" if state.has_crashed else given.cause


def _then_begin(
    turn: Turn, events: tuple[e.Event, ...], given: i.StepLost, agent: Agent, at: datetime
) -> tuple[e.Event, ...]:
    if given.next_attempt_id is None:
        return events
    return then_begin(turn, events, agent, given.next_attempt_id, at=at)
