"""The states of a turn: one class each, each holding exactly what that state knows.

`status` and `cursor` are properties of the state, so they can never disagree with it. A state
belongs to the status RUNNING in six forms, which differ in what has been *begun*:

    ModelDue       the next thing is a model call; none is begun
    CallingModel   a model call is begun, its begin mark is stored
    CompactionDue  the next thing is to have the history summed up; that is not begun
    Compacting     it is begun: the model is asked for a summary
    ToolsDue       the next thing is to run tools; none is begun
    RunningTools   at least one tool is begun

Whoever picks up a turn in `CallingModel`, `Compacting` or `RunningTools` without having begun that
step itself knows that the step is lost (`app.turn.recovery`).
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from app.turn.agent import WaitPolicy
from app.turn.failures import FailureRecord
from app.turn.ids import AttemptId
from app.turn.open_calls import OpenCall
from app.turn.status import LimitName, PauseCause, RoundFailure, Status
from app.turn.transcript import StopReason
from app.turn.waits import WAITING


@dataclass(frozen=True, kw_only=True)
class Ready:
    held: bool = False
    """No worker takes the turn before somebody says `RUN` (T11a)."""
    kind: Literal["ready"] = "ready"


@dataclass(frozen=True, kw_only=True)
class ModelDue:
    kind: Literal["model_due"] = "model_due"


@dataclass(frozen=True, kw_only=True)
class CallingModel:
    attempt_id: AttemptId
    text_stored: int = 0
    """Code points of the answer that are stored as events."""
    reasoning_stored: int = 0
    started_version: int = 0
    """The turn's version once the attempt was begun; 0: not known."""
    has_crashed: bool = False
    """Its worker has died, and the turn was paused for that before it went on."""
    kind: Literal["calling_model"] = "calling_model"


@dataclass(frozen=True, kw_only=True)
class CompactionDue:
    """A request was longer than its model's window; what was said before is to be summed up."""

    record: FailureRecord
    is_asked: bool = False
    """Somebody has asked for it, so that the failure is no longer the one that is waited for."""
    kind: Literal["compaction_due"] = "compaction_due"


@dataclass(frozen=True, kw_only=True)
class Compacting:
    attempt_id: AttemptId
    record: FailureRecord
    is_asked: bool = False
    has_crashed: bool = False
    """As of a model call."""
    kind: Literal["compacting"] = "compacting"


@dataclass(frozen=True, kw_only=True)
class ToolsDue:
    asked_at: int
    """Where the message that asked for the calls stands in the transcript."""
    calls: tuple[OpenCall, ...]
    kind: Literal["tools_due"] = "tools_due"


@dataclass(frozen=True, kw_only=True)
class RunningTools:
    attempt_id: AttemptId
    asked_at: int
    calls: tuple[OpenCall, ...]
    """All calls of the round without a result, in declared order."""
    is_failing: bool = False
    """It is decided that the turn fails once nothing is in flight."""
    failure: RoundFailure = "tool_failed"
    """As what, if it does."""
    has_crashed: bool = False
    """As of a model call."""
    kind: Literal["running_tools"] = "running_tools"


@dataclass(frozen=True, kw_only=True)
class RetryScheduled:
    """A failed model call is tried again by itself at `due_at`."""

    record: FailureRecord
    requested_at: datetime
    due_at: datetime
    kind: Literal["retry_scheduled"] = "retry_scheduled"


@dataclass(frozen=True, kw_only=True)
class ToolRetryScheduled:
    """A failed tool is tried again by itself at `due_at`; no call is in flight."""

    requested_at: datetime
    due_at: datetime
    asked_at: int
    calls: tuple[OpenCall, ...]
    kind: Literal["tool_retry_scheduled"] = "tool_retry_scheduled"


@dataclass(frozen=True, kw_only=True)
class WaitingForModel:
    record: FailureRecord
    requested_at: datetime
    text_kept: bool = False  # of the failed answer, and no answer
    kind: Literal["waiting_for_model"] = "waiting_for_model"

    @property
    def retry_at(self) -> datetime | None:
        """When the provider said it takes requests again; `None` when it did not say."""
        return self.record.retry_at


@dataclass(frozen=True, kw_only=True)
class WaitingForUser:
    """A plain question was put to the user; what they say next is the answer."""

    question: str
    requested_at: datetime
    asked_at: int | None = None
    calls: tuple[OpenCall, ...] = ()
    """Calls that are due once the answer is there; none of them is in flight."""
    policy: WaitPolicy = field(default_factory=WaitPolicy)
    is_expired: bool = False
    """The time for an answer is over, and the policy keeps the question (`keep`)."""
    kind: Literal["waiting_for_user"] = "waiting_for_user"

    @property
    def expires_at(self) -> datetime | None:
        """When the time for an answer is over; `None`: never."""
        timeout = self.policy.timeout
        return None if timeout is None else self.requested_at + timeout


@dataclass(frozen=True, kw_only=True)
class WaitingForCalls:
    """At least one call waits for somebody; the others wait for that, none is in flight.

    What the turn waits for is what the first of them in declared order waits for.
    """

    requested_at: datetime
    asked_at: int
    calls: tuple[OpenCall, ...]
    kind: Literal["waiting_for_calls"] = "waiting_for_calls"

    @property
    def first(self) -> OpenCall:
        """The first call whose wait is open.

        Raises:
            StopIteration: none is: the state is between two events of one commit.
        """
        return next(call for call in self.calls if call.is_waiting)


@dataclass(frozen=True, kw_only=True)
class Paused:
    """Stopped where it stood; it goes on from there."""

    cause: PauseCause
    requested_at: datetime
    limit: LimitName | None = None
    """Which limit, when the cause is one."""
    asked_at: int | None = None
    calls: tuple[OpenCall, ...] = ()
    """Calls without a result; none of them is in flight."""
    text_kept: bool = False  # of the answer that the pause has cut off
    lost: CallingModel | Compacting | RunningTools | None = None
    """The step whose worker has died; it is recovered once the turn goes on. Its calls are those
    above."""
    kind: Literal["paused"] = "paused"


@dataclass(frozen=True, kw_only=True)
class Completed:
    stop_reason: StopReason
    position: int | None
    """Where the final answer stands in the transcript; `None` when the model said nothing."""
    begins_at: int | None = None
    """Where its first part stands, when it came in several; `None`: it is one message."""
    kind: Literal["completed"] = "completed"


@dataclass(frozen=True, kw_only=True)
class Failed:
    reason: str
    """A stable code, such as `request_refused`."""
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    kind: Literal["cancelled"] = "cancelled"


@dataclass(frozen=True, kw_only=True)
class LimitReached:
    """Ended by one of its agent's limits."""

    limit: LimitName
    used: float
    allowed: float
    """Tokens, calls or steps; seconds for a duration."""
    kind: Literal["limit_reached"] = "limit_reached"


Running: TypeAlias = ModelDue | CallingModel | CompactionDue | Compacting | ToolsDue | RunningTools
Blocked: TypeAlias = (
    RetryScheduled
    | ToolRetryScheduled
    | WaitingForModel
    | WaitingForUser
    | WaitingForCalls
    | Paused
)
Terminal: TypeAlias = Completed | Failed | Cancelled | LimitReached
State: TypeAlias = Ready | Running | Blocked | Terminal


def status_of(state: State) -> Status:  # noqa: C901, PLR0912 - it only routes
    """The status that a state belongs to."""
    match state:
        case Ready():
            return Status.READY
        case (
            ModelDue()
            | CallingModel()
            | CompactionDue()
            | Compacting()
            | ToolsDue()
            | RunningTools()
        ):
            return Status.RUNNING
        case RetryScheduled() | ToolRetryScheduled():
            return Status.RETRY_SCHEDULED
        case WaitingForModel():
            return Status.WAITING_FOR_MODEL
        case WaitingForUser():
            return Status.WAITING_FOR_USER
        case WaitingForCalls():
            first = next((call.wait for call in state.calls if call.is_waiting and call.wait), None)
            return Status.RUNNING if first is None else WAITING[first.kind][1]
        case Completed():
            return Status.COMPLETED
        case Failed():
            return Status.FAILED
        case Cancelled():
            return Status.CANCELLED
        case Paused():
            return Status.PAUSED
        case LimitReached(limit=LimitName.ITERATIONS):
            return Status.MAX_ITERATIONS_REACHED
        case LimitReached(limit=LimitName.STEPS):
            return Status.MAX_STEPS_REACHED
        case LimitReached():
            return Status.BUDGET_EXCEEDED
