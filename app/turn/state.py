"""What a turn is: one class per state, each holding exactly what that state knows.

`status` and `cursor` are properties of the state, so they can never disagree with it. A state
belongs to the status RUNNING in four forms, which differ in what has been *begun*:

    ModelDue      the next thing is a model call; none is begun
    CallingModel  a model call is begun, its begin mark is stored
    ToolsDue      the next thing is to run tools; none is begun
    RunningTools  at least one tool is begun

Whoever picks up a turn in `CallingModel` or `RunningTools` without having begun that step itself
knows that the step is lost (`app.turn.recovery`).
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from app.turn.agent import Agent, Limits, WaitPolicy
from app.turn.counters import Counters
from app.turn.failures import FailureRecord
from app.turn.ids import AttemptId, Identity, TurnId
from app.turn.open_calls import OpenCall
from app.turn.queued_input import QueuedInput
from app.turn.status import (
    TERMINAL,
    Cursor,
    LimitName,
    PauseCause,
    RoundFailure,
    Status,
    SuspensionType,
)
from app.turn.transcript import StopReason, Usage, UserMessage
from app.turn.waits import WAITING, unheeded_end


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    held: bool = False
    """No worker takes the turn before somebody says `RUN` (T11a)."""
    kind: Literal["ready"] = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDue:
    kind: Literal["model_due"] = "model_due"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallingModel:
    attempt_id: AttemptId
    text_stored: int = 0
    """Code points of the answer that are stored as events."""
    reasoning_stored: int = 0
    kind: Literal["calling_model"] = "calling_model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsDue:
    asked_at: int
    """Where the message that asked for the calls stands in the transcript."""
    calls: tuple[OpenCall, ...]
    kind: Literal["tools_due"] = "tools_due"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTools:
    attempt_id: AttemptId
    asked_at: int
    calls: tuple[OpenCall, ...]
    """All calls of the round without a result, in declared order."""
    is_failing: bool = False
    """It is decided that the turn fails once nothing is in flight."""
    failure: RoundFailure = "tool_failed"
    """As what, if it does."""
    kind: Literal["running_tools"] = "running_tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled:
    """A failed model call is tried again by itself at `due_at`."""

    record: FailureRecord
    requested_at: datetime
    due_at: datetime
    kind: Literal["retry_scheduled"] = "retry_scheduled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRetryScheduled:
    """A failed tool is tried again by itself at `due_at`; no call is in flight."""

    requested_at: datetime
    due_at: datetime
    asked_at: int
    calls: tuple[OpenCall, ...]
    kind: Literal["tool_retry_scheduled"] = "tool_retry_scheduled"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForModel:
    record: FailureRecord
    requested_at: datetime
    text_kept: bool = False  # of the failed answer, and no answer
    kind: Literal["waiting_for_model"] = "waiting_for_model"

    @property
    def retry_at(self) -> datetime | None:
        """When the provider said it takes requests again; `None` when it did not say."""
        wait = self.record.failure.retry_after
        return None if wait is None else self.record.occurred_at + wait


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """Stopped where it stood; it goes on from there."""

    cause: PauseCause
    requested_at: datetime
    limit: LimitName | None = None
    """Which limit, when the cause is one."""
    asked_at: int | None = None
    calls: tuple[OpenCall, ...] = ()
    """Calls that were asked for and not begun; none of them is in flight."""
    text_kept: bool = False  # of the answer that the pause has cut off
    kind: Literal["paused"] = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    stop_reason: StopReason
    position: int | None
    """Where the final answer stands in the transcript; `None` when the model said nothing."""
    kind: Literal["completed"] = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    reason: str
    """A stable code, such as `request_refused`."""
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    kind: Literal["cancelled"] = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """Ended by one of its agent's limits."""

    limit: LimitName
    used: float
    allowed: float
    """Tokens, calls or steps; seconds for a duration."""
    kind: Literal["limit_reached"] = "limit_reached"


Running: TypeAlias = ModelDue | CallingModel | ToolsDue | RunningTools
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One task of an agent, from a user's message to a terminal state."""

    identity: Identity
    version: int
    """Optimistic lock, sequence of the last event, SSE id and ETag in one; from 1."""
    state: State
    next_position: int
    """Where the next message goes in the conversation's transcript."""
    created_at: datetime
    cancel_requested: bool = False
    pause_requested: bool = False
    limits: Limits | None = None
    """Instead of its agent's, once an operator has changed them (C15, C16)."""
    waited: timedelta = timedelta(0)
    """Time spent on hold and in blocked states, as far as that has ended."""
    counters: Counters = field(default_factory=Counters)
    usage: Usage = field(default_factory=Usage)
    is_repaired: bool = False
    """The model was told that an answer does not fit the agent's output type; it is told once."""
    output: str | None = None
    """The value of the final answer as JSON text, where the agent declares an output type."""
    questions: tuple[str, ...] = ()
    """Asked by tools of the open round; put to the user when the round has ended."""
    unread: tuple[int, ...] = ()
    """Places of user messages that no step has followed yet."""
    is_taken_up: bool = False
    """A worker has begun a step of it, or a hook has asked the user."""
    queue: tuple[QueuedInput, ...] = ()
    """In order of arrival. An ended turn still shows what it handed on to the next one."""
    resumes_turn_id: TurnId | None = None
    """The turn whose history it goes on with, where no message of a user has opened it."""
    model: str | None = None
    """Instead of its agent's, once a resume has named another (C17)."""
    told_at: int | None = None
    """The place of the last notice that told its model to write an answer again."""

    def limits_under(self, agent: Agent) -> Limits:
        """The limits that hold for this turn."""
        return self.limits or agent.limits

    @property
    def status(self) -> Status:
        return _status_of(self.state)

    @property
    def cursor(self) -> Cursor:
        match self.state:
            case ToolsDue() | RunningTools() | ToolRetryScheduled() | WaitingForCalls():
                return Cursor.PROCESS_TOOLS
            case Completed() | Failed() | Cancelled() | LimitReached():
                return Cursor.FINISHED
            case Paused(calls=calls) | WaitingForUser(calls=calls) if calls:
                return Cursor.PROCESS_TOOLS
            case _:
                return Cursor.INVOKE_MODEL

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def is_at_work(self) -> bool:
        """Whether a worker drives the turn or may take it: it has not ended, waits for nobody."""
        return self.status in {Status.READY, Status.RUNNING} and not self.is_held

    @property
    def is_held(self) -> bool:
        """Whether the turn is READY and on hold: nothing begins it but a `RUN`."""
        return isinstance(self.state, Ready) and self.state.held

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """Calls without a result, in declared order."""
        match self.state:
            case (
                ToolsDue(calls=calls)
                | RunningTools(calls=calls)
                | ToolRetryScheduled(calls=calls)
                | WaitingForUser(calls=calls)
                | WaitingForCalls(calls=calls)
                | Paused(calls=calls)
            ):
                return calls
            case _:
                return ()

    @property
    def waiting_calls(self) -> tuple[OpenCall, ...]:
        """Calls that somebody may answer now, in declared order; whatever the turn's status."""
        return tuple(call for call in self.open_calls if call.is_waiting)

    @property
    def expires_at(self) -> datetime | None:
        """When the first of its waits is over whose expiry has not been dealt with."""
        ends = [unheeded_end(call.wait) for call in self.waiting_calls if call.wait]
        if isinstance(self.state, WaitingForUser) and not self.state.is_expired:
            ends.append(self.state.expires_at)
        return min((end for end in ends if end is not None), default=None)

    @property
    def steering(self) -> tuple[UserMessage, ...]:
        """Messages that want to be heard at the next boundary, in order of arrival."""
        return tuple(queued.message for queued in self.queue if queued.mode == "steer")

    @property
    def attempt_in_flight(self) -> AttemptId | None:
        """The step that is begun and not ended, if there is one."""
        match self.state:
            case CallingModel(attempt_id=attempt_id) | RunningTools(attempt_id=attempt_id):
                return attempt_id
            case _:
                return None

    @property
    def due_at(self) -> datetime | None:
        """When the turn goes on by itself."""
        match self.state:
            case RetryScheduled(due_at=due_at) | ToolRetryScheduled(due_at=due_at):
                return due_at
            case _:
                return None

    @property
    def retry_at(self) -> datetime | None:
        """When a retry makes sense: by itself, or by what the provider said; `None`: not known."""
        return self.state.retry_at if isinstance(self.state, WaitingForModel) else self.due_at

    @property
    def suspension_type(self) -> SuspensionType | None:
        """What the turn waits for; `None` while it is at work, paused or ended."""
        match self.state:
            case WaitingForModel():
                return "MODEL"
            case RetryScheduled() | ToolRetryScheduled():
                return "RETRY"
            case WaitingForUser():
                return "USER_INPUT"
            case WaitingForCalls() as state:
                return WAITING[state.first.wait.kind][0] if state.first.wait else None
            case _:
                return None

    @property
    def current_failure(self) -> FailureRecord | None:
        """The failure the turn waits for; `None` once it goes on."""
        match self.state:
            case WaitingForModel(record=record) | RetryScheduled(record=record):
                return record
            case _:
                return None


def _status_of(state: State) -> Status:  # noqa: C901, PLR0912 - it only routes
    match state:
        case Ready():
            return Status.READY
        case ModelDue() | CallingModel() | ToolsDue() | RunningTools():
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
