"""What is to be done next, computed from the stored turn alone.

Starting, continuing, retrying and resuming after a crash are therefore the same line of code: ask,
do it, ask again.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from app.turn.ids import AttemptId
from app.turn.state import Turn
from app.turn.states import (
    CallingModel,
    Compacting,
    CompactionDue,
    ModelDue,
    Ready,
    RetryScheduled,
    RunningTools,
    ToolRetryScheduled,
    ToolsDue,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModel:
    """Begin a model call, be it for a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTools:
    """Begin the tools of the open round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverLostStep:
    """A step was begun by a worker that is gone."""

    attempt_id: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Nothing to do, at least until then; `None`: until somebody says something."""

    until: datetime | None = None


Step: TypeAlias = CallModel | RunTools | RecoverLostStep | Rest


def next_step(turn: Turn, *, at: datetime) -> Step:
    """The next step of a turn that nobody is working on."""
    match turn.state:
        case Ready(held=False) | ModelDue() | CompactionDue():
            return CallModel()
        case ToolsDue():
            return RunTools()
        case (
            CallingModel(attempt_id=attempt_id)
            | Compacting(attempt_id=attempt_id)
            | RunningTools(attempt_id=attempt_id)
        ):
            return RecoverLostStep(attempt_id=attempt_id)
        case RetryScheduled(due_at=due_at):
            return CallModel() if at >= due_at else Rest(until=due_at)
        case ToolRetryScheduled(due_at=due_at):
            return RunTools() if at >= due_at else Rest(until=due_at)
        case _:
            return Rest()
