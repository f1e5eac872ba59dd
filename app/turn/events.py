"""What has happened to a turn: facts in the past tense, stored in the journal in this order.

Each event raises the turn's version by one, so its sequence needs no counter of its own. `type` is
the name readers see (turn semantics, section 2.6). An event that adds a message to the transcript
carries its position; the message itself is stored once, in the transcript.
"""
# ruff: noqa: PLC0414 - the whole vocabulary goes by the name of this module

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from app.turn.agent import Limits, WaitPolicy
from app.turn.failures import FailureRecord
from app.turn.ids import AttemptId, CallId, Identity, MessageId, TurnId
from app.turn.model_events import (
    CompactionEvent as CompactionEvent,
)
from app.turn.model_events import (
    CompactionFailed as CompactionFailed,
)
from app.turn.model_events import (
    CompactionStarted as CompactionStarted,
)
from app.turn.model_events import (
    ContextCompacted as ContextCompacted,
)
from app.turn.model_events import (
    ModelCompleted as ModelCompleted,
)
from app.turn.model_events import (
    ModelFailed as ModelFailed,
)
from app.turn.model_events import (
    ModelReasoning as ModelReasoning,
)
from app.turn.model_events import (
    ModelStarted as ModelStarted,
)
from app.turn.model_events import (
    ModelStopped as ModelStopped,
)
from app.turn.model_events import (
    ModelText as ModelText,
)
from app.turn.model_events import (
    OutputReady as OutputReady,
)
from app.turn.queued_input import QueuedInput
from app.turn.status import Cursor, LimitName, LostTo, PauseCause, ResumedBy, SuspensionType
from app.turn.tool_events import (
    ExternalToolCancelRequested as ExternalToolCancelRequested,
)
from app.turn.tool_events import (
    ExternalToolCompleted as ExternalToolCompleted,
)
from app.turn.tool_events import (
    ExternalToolFailed as ExternalToolFailed,
)
from app.turn.tool_events import (
    ExternalToolRequested as ExternalToolRequested,
)
from app.turn.tool_events import (
    ToolApprovalDecided as ToolApprovalDecided,
)
from app.turn.tool_events import (
    ToolApprovalRequested as ToolApprovalRequested,
)
from app.turn.tool_events import (
    ToolAttemptFailed as ToolAttemptFailed,
)
from app.turn.tool_events import (
    ToolCompleted as ToolCompleted,
)
from app.turn.tool_events import (
    ToolFailed as ToolFailed,
)
from app.turn.tool_events import (
    ToolInputReceived as ToolInputReceived,
)
from app.turn.tool_events import (
    ToolInputRequested as ToolInputRequested,
)
from app.turn.tool_events import (
    ToolInterrupted as ToolInterrupted,
)
from app.turn.tool_events import (
    ToolPutAside as ToolPutAside,
)
from app.turn.tool_events import (
    ToolRejected as ToolRejected,
)
from app.turn.tool_events import (
    ToolRequested as ToolRequested,
)
from app.turn.tool_events import (
    ToolSkipped as ToolSkipped,
)
from app.turn.tool_events import (
    ToolStarted as ToolStarted,
)
from app.turn.tool_events import (
    WaitEvent as WaitEvent,
)
from app.turn.tool_events import (
    WaitExpired as WaitExpired,
)
from app.turn.transcript import (
    ClosingMessage,
    NoticeMessage,
    QuestionMessage,
    StopReason,
    UserMessage,
)

# --- The turn ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    identity: Identity
    first_position: int
    created_at: datetime
    held: bool = False
    """No worker takes the turn before somebody says `RUN`."""
    never_replay: bool = False
    """No begun call of it is run again by itself, whatever its agent says."""
    queue: tuple[QueuedInput, ...] = ()
    """What the conversation's turn before this one had in its queue when it ended."""
    resumes_turn_id: TurnId | None = None
    """The turn whose history it goes on with, without a message of a user."""
    model: str | None = None
    """The model it calls instead of its agent's."""
    type: Literal["TURN_STARTED"] = "TURN_STARTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded:
    position: int
    message: UserMessage | ClosingMessage | NoticeMessage | QuestionMessage
    type: Literal["MESSAGE_ADDED"] = "MESSAGE_ADDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    step: int
    cursor: Cursor
    type: Literal["STEP_STARTED"] = "STEP_STARTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCompleted:
    step: int
    type: Literal["STEP_COMPLETED"] = "STEP_COMPLETED"


RecoveryRule: TypeAlias = Literal[
    "run", "rerun", "rerun_idempotent", "report", "interrupt", "park", "keep"
]
"""`run`: it has certainly done nothing yet. `keep`: it is done, and its result is known. `report`
and `interrupt`: it gets a result that says what is known. `park`: a person is asked."""
ProbeFinding: TypeAlias = Literal["done", "not_done", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredCall:
    """What becomes of a call without a result, and what a probe has found out about it."""

    call_id: CallId
    rule: RecoveryRule
    probed: ProbeFinding | None = None
    """`None`: nobody was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecovered:
    """A step was lost or left unfinished, and this is what becomes of it."""

    attempt_id: AttemptId | None
    """`None`: the step was another turn's, or another service's, and this turn goes on from it."""
    recovery: Literal["CALL_MODEL", "RETRY_RESPONSE", "CONTINUE_RESPONSE", "RECOVER_TOOLS"]
    discard_from: int | None = None
    """Text of the attempt from this code point on is withdrawn; `None`: there was none."""
    calls: tuple[RecoveredCall, ...] = ()
    cause: LostTo | None = None
    """What it was lost to; `None`: it was left unfinished, as above, or nobody has noted it."""
    type: Literal["STEP_RECOVERED"] = "STEP_RECOVERED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSuspended:
    suspension_type: SuspensionType
    record: FailureRecord | None
    """The model's failure; `None` when it is not the model that the turn waits for."""
    requested_at: datetime
    next_runnable_at: datetime | None
    """When the turn goes on by itself; `None`: when somebody says so."""
    question: str | None = None
    """What the user is asked, when the turn waits for that."""
    heard: int = 0
    """How many of the unread messages the hook that asks has seen."""
    call_id: CallId | None = None
    """The first call that waits for somebody, when the turn waits for that."""
    policy: WaitPolicy = field(default_factory=WaitPolicy)
    """How long that wait may take; of a plain question too."""
    type: Literal["TURN_SUSPENDED"] = "TURN_SUSPENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryWasScheduled:
    retry_count: int
    due_at: datetime
    type: Literal["RETRY_SCHEDULED"] = "RETRY_SCHEDULED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResumed:
    command_type: ResumedBy
    waited: timedelta
    """How long the turn was blocked, or on hold."""
    correlation_id: str | None = None
    limits: Limits | None = None
    """The turn's limits from here on, when they were changed."""
    model: str | None = None
    """The model it calls from here on, when another was named."""
    max_output_tokens: int | None = None
    """How long its answers may be from here on, when that was changed."""
    keep_turns: int | None = None
    """How many turns before it go into its requests from here on, when that was changed."""
    compact: bool = False
    """Whether those before it are summed up first."""
    type: Literal["TURN_RESUMED"] = "TURN_RESUMED"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancellationRequested:
    type: Literal["CANCELLATION_REQUESTED"] = "CANCELLATION_REQUESTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequested:
    """Asked for while tools are in flight: the turn pauses when they have ended."""

    type: Literal["PAUSE_REQUESTED"] = "PAUSE_REQUESTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPaused:
    cause: PauseCause
    requested_at: datetime
    limit: LimitName | None = None
    type: Literal["TURN_PAUSED"] = "TURN_PAUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    stop_reason: StopReason
    position: int | None
    begins_at: int | None = None
    """Where the answer's first part stands, when it came in several."""
    type: Literal["TURN_COMPLETED"] = "TURN_COMPLETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    reason: str
    detail: str = ""
    """For operators: the provider's own words, redacted."""
    type: Literal["TURN_FAILED"] = "TURN_FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCancelled:
    type: Literal["TURN_CANCELLED"] = "TURN_CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxIterationsReached:
    used: int
    allowed: int
    type: Literal["MAX_ITERATIONS_REACHED"] = "MAX_ITERATIONS_REACHED"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxStepsReached:
    used: int
    allowed: int
    type: Literal["MAX_STEPS_REACHED"] = "MAX_STEPS_REACHED"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetExceeded:
    reason: LimitName
    used: float
    allowed: float
    """Tokens or calls; seconds for a duration."""
    type: Literal["BUDGET_EXCEEDED"] = "BUDGET_EXCEEDED"


# --- Messages that wait --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InputQueued:
    """A message came while the turn was at work."""

    queued: QueuedInput
    type: Literal["INPUT_QUEUED"] = "INPUT_QUEUED"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPromoted:
    """A message of the queue is said now: `MessageAdded` follows."""

    message_id: MessageId
    type: Literal["INPUT_PROMOTED"] = "INPUT_PROMOTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWithdrawn:
    """A message of the queue will not be said."""

    message_id: MessageId
    type: Literal["INPUT_WITHDRAWN"] = "INPUT_WITHDRAWN"


Event: TypeAlias = (
    TurnStarted
    | MessageAdded
    | StepStarted
    | StepCompleted
    | StepRecovered
    | TurnSuspended
    | RetryWasScheduled
    | TurnResumed
    | CancellationRequested
    | TurnCompleted
    | TurnFailed
    | TurnCancelled
    | MaxIterationsReached
    | MaxStepsReached
    | BudgetExceeded
    | PauseRequested
    | TurnPaused
    | ModelStarted
    | ModelText
    | ModelReasoning
    | ModelCompleted
    | ModelFailed
    | ModelStopped
    | OutputReady
    | CompactionEvent
    | ToolRequested
    | ToolStarted
    | ToolCompleted
    | ToolFailed
    | ToolAttemptFailed
    | ToolInterrupted
    | ToolSkipped
    | InputQueued
    | InputPromoted
    | InputWithdrawn
    | WaitEvent
    | ExternalToolCompleted
    | ExternalToolFailed
    | ToolRejected
)
