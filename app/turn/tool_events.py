"""What has happened to a turn's calls: the part of `app.turn.events` that is about tools."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from app.turn.agent import Effect, OnExpiry
from app.turn.ids import ActorId, AttemptId, CallId, MessageId
from app.turn.status import RoundFailure
from app.turn.transcript import InterruptionReason, ToolResult
from app.turn.waits import ApprovalStage, ApprovalWait, ExternalWait, FormWait


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequested:
    call_id: CallId
    tool_name: str
    effect: Effect
    position: int
    """Where the result will stand."""
    type: Literal["TOOL_REQUESTED"] = "TOOL_REQUESTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """The mark that is stored before a tool is entered."""

    call_id: CallId
    attempt_id: AttemptId
    attempt: int
    type: Literal["TOOL_STARTED"] = "TOOL_STARTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCompleted:
    position: int
    result: ToolResult
    question: str | None = None
    """What the tool asks the user."""
    known_by: Literal["probe", "person"] | None = None
    """Who has said that an attempt whose end was unknown has come to this; `None`: the tool."""
    type: Literal["TOOL_COMPLETED"] = "TOOL_COMPLETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailed:
    """The tool was entered, or could not be, and its result tells the model of an error."""

    position: int
    result: ToolResult
    fails_turn: bool = False
    """Whether the turn fails once nothing is in flight."""
    failure: RoundFailure = "tool_failed"
    """As what, if it does."""
    type: Literal["TOOL_FAILED"] = "TOOL_FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAttemptFailed:
    """An attempt failed and another is to follow: the call stays open."""

    call_id: CallId
    tool_name: str
    attempt: int
    error: str
    retry_at: datetime
    type: Literal["TOOL_ATTEMPT_FAILED"] = "TOOL_ATTEMPT_FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInterrupted:
    """The call was answered without a result of the tool."""

    position: int
    result: ToolResult
    reason: InterruptionReason | None = None
    """`None` in journals that were written before reasons were kept."""
    source_message_id: MessageId | None = None
    """The message that the call was given up for."""
    type: Literal["TOOL_INTERRUPTED"] = "TOOL_INTERRUPTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSkipped:
    """The call was not begun, because a message that steers the turn came first (T9)."""

    position: int
    result: ToolResult
    reason: InterruptionReason = InterruptionReason.USER_MESSAGE
    source_message_id: MessageId
    """The first of the messages that steer."""
    type: Literal["TOOL_SKIPPED"] = "TOOL_SKIPPED"


# --- Calls that wait for somebody ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalRequested:
    """The call waits for somebody's approval."""

    call_id: CallId
    tool_name: str
    wait: ApprovalWait
    type: Literal["TOOL_APPROVAL_REQUESTED"] = "TOOL_APPROVAL_REQUESTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInputRequested:
    """The call waits for the user."""

    call_id: CallId
    tool_name: str
    wait: FormWait
    type: Literal["TOOL_INPUT_REQUESTED"] = "TOOL_INPUT_REQUESTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalToolRequested:
    """Somebody outside is to do the call, under the key `turnId:callId`."""

    call_id: CallId
    tool_name: str
    wait: ExternalWait
    type: Literal["EXTERNAL_TOOL_REQUESTED"] = "EXTERNAL_TOOL_REQUESTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPutAside:
    """Somebody is to be asked, and others of its round come first.

    The tool has asked for something and done nothing, or it is not known what it has done.
    """

    call_id: CallId
    wait: ApprovalWait | FormWait
    type: Literal["TOOL_PUT_ASIDE"] = "TOOL_PUT_ASIDE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalDecided:
    """A person has approved or rejected what the call wants to do."""

    call_id: CallId
    tool_name: str
    stage: ApprovalStage
    fingerprint: str
    is_approved: bool
    actor_id: ActorId
    at: datetime
    reason: str | None = None
    """Why it was rejected."""
    type: Literal["TOOL_APPROVAL_DECIDED"] = "TOOL_APPROVAL_DECIDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInputReceived:
    """The user has answered what the call asks."""

    call_id: CallId
    data: str | None
    """The values that were filled in, a JSON object as text. `None`: it was text."""
    type: Literal["TOOL_INPUT_RECEIVED"] = "TOOL_INPUT_RECEIVED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalToolCompleted:
    position: int
    result: ToolResult
    type: Literal["EXTERNAL_TOOL_COMPLETED"] = "EXTERNAL_TOOL_COMPLETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalToolFailed:
    position: int
    result: ToolResult
    code: str
    type: Literal["EXTERNAL_TOOL_FAILED"] = "EXTERNAL_TOOL_FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalToolCancelRequested:
    """The result of a call that is outside is no longer wanted; what was done stays done."""

    call_id: CallId
    tool_name: str
    type: Literal["EXTERNAL_TOOL_CANCEL_REQUESTED"] = "EXTERNAL_TOOL_CANCEL_REQUESTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRejected:
    """The call was refused by the policy or by a person; its tool was not entered for it."""

    position: int
    result: ToolResult
    type: Literal["TOOL_REJECTED"] = "TOOL_REJECTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitExpired:
    """The time of a wait is over; nobody has decided anything."""

    call_id: CallId | None
    """`None`: of a plain question."""
    on_expiry: OnExpiry
    type: Literal["WAIT_EXPIRED"] = "WAIT_EXPIRED"


WaitEvent: TypeAlias = (
    ToolApprovalRequested
    | ToolInputRequested
    | ExternalToolRequested
    | ToolPutAside
    | ToolApprovalDecided
    | ToolInputReceived
    | ExternalToolCancelRequested
    | WaitExpired
)
"""Events about a call that waits, or a question, which give no call its result."""
