"""Turns whose worker has died: who goes on with them, and from where.

A turn is *orphaned* when it is RUNNING and its last claim ran out without being given up. That is
not stored but derived from the claim, by the database's clock, so it is handed in by whoever holds
a new claim. Then

a worker takes it over    it goes on by `app.turn.recovery`, unless its agent wants a person to
                          decide (C25) or worker after worker has died of it (T116): then it is
                          PAUSED, with the lost step kept as it was
RESUME                    the lost step is in flight again, of a worker that is gone, and whoever
                          claims the turn recovers it like any other (T85)
a message                 every open call is answered, nothing is run, and the model is called with
                          the message (T10a)
CANCEL                    nothing of it runs, so it ends at once
"""

from dataclasses import replace

from app.turn.state import Turn
from app.turn.states import (
    CallingModel,
    Compacting,
    CompactionDue,
    ModelDue,
    Paused,
    RunningTools,
    State,
    ToolsDue,
)
from app.turn.status import PauseCause

CRASHES = frozenset({PauseCause.CRASH, PauseCause.CRASH_LOOP})
"""Causes of a pause that leave a step as it was lost."""


def lost_step(turn: Turn) -> CallingModel | Compacting | RunningTools | None:
    """The step that a pause keeps for its recovery; its calls are the paused turn's."""
    match turn.state:
        case CallingModel() | Compacting() as asking:
            return replace(asking, has_crashed=True)
        case RunningTools() as running:
            return replace(running, calls=(), has_crashed=True)
        case _:
            return None


def has_lost_text(lost: CallingModel | Compacting | RunningTools | None) -> bool:
    """Whether text is stored of the answer that was lost."""
    return isinstance(lost, CallingModel) and lost.text_stored > 0


def has_crashed(state: State) -> bool:
    """Whether the step in flight is one that a pause has kept: only its recovery is news."""
    return isinstance(state, CallingModel | Compacting | RunningTools) and state.has_crashed


def still_lost(state: State, due: ToolsDue | ModelDue | CompactionDue) -> State:
    """Where a turn goes on from `state`: at the step that was lost, or at what is due.

    A round all of whose calls were answered meanwhile has nothing left that could be lost.
    """
    match (state, due):
        case (Paused(lost=(CallingModel() | Compacting()) as asking), ModelDue() | CompactionDue()):
            return asking
        case (Paused(lost=RunningTools() as running), ToolsDue(calls=calls)):
            return replace(running, calls=calls)
        case _:
            return due
