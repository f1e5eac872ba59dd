"""What may be told to a turn.

*Requests* come from people and may be refused with a reason (`app.turn.errors`). *Reports* come
from our own shell and are facts; a stale one yields no events. Ids, times and chance are drawn by
the shell and handed in, so that the core stays a function.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from app.turn.changes import NO_CHANGES, Changes
from app.turn.compaction_reports import CompactionEnded as CompactionEnded  # noqa: PLC0414
from app.turn.compaction_reports import Replaced as Replaced  # noqa: PLC0414
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.ids import ActorId, AttemptId, CallId, FailureId, MessageId
from app.turn.lost_calls import LookedInto
from app.turn.status import LostTo
from app.turn.transcript import ModelAnswer, Outcome, Usage, UserMessage
from app.turn.waits import ApprovalNeeded, InputNeeded, JudgedCall

WhenRunning: TypeAlias = Literal["reject", "queue", "steer"]
"""What becomes of a message to a turn at work (C5)."""

# --- Requests ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAnswer:
    """All that is stored of an answer whose worker is gone, for whoever goes on without it."""

    text: str = ""
    reasoning: str = ""


NOTHING_WRITTEN = LostAnswer()


@dataclass(frozen=True, slots=True, kw_only=True)
class PostMessage:
    """A user's message to the active turn of its conversation."""

    message: UserMessage
    when_running: WhenRunning = "reject"
    """What becomes of it while the turn is READY or RUNNING (T7 to T9)."""
    is_orphaned: bool = False
    """Whether the turn's worker is gone, and the caller holds the claim in its place (T10a)."""
    recover_first: bool = False
    """Whether an orphaned turn is to be brought to its end first, the message said behind it."""
    lost: LostAnswer = NOTHING_WRITTEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Take a message out of the queue before it is said."""

    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryModel:
    """`RETRY_MODEL`: send the failed request again."""

    failure_id: FailureId
    changes: Changes = NO_CHANGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """`RETRY`: take a scheduled retry that is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueNow:
    """`CONTINUE`: take a scheduled retry before it is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """`RESUME`: go on with a paused turn."""

    changes: Changes = NO_CHANGES
    is_orphaned: bool = False
    """As of a message: the turn would be paused for that, had anybody taken it over yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replan:
    """`REPLAN_WITH_MESSAGE`: close every open call and go on with a new message."""

    message: UserMessage
    lost: LostAnswer = NOTHING_WRITTEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`RUN`: a turn on hold may be taken by a worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInput:
    """`USER_INPUT`: what the user says to a question."""

    message: UserMessage | None
    """`None`: nothing, or nothing but blanks."""
    call_id: CallId | None = None
    """The call whose form or question it answers; `None`: the one that waits for the user."""
    data: "FormData | None" = None
    """Values for a form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormData:
    """Values that were checked against a schema."""

    values: str
    """A JSON object as text."""
    schema: str
    """The schema that they fit; they count only for a form that has this very one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveTool:
    """`APPROVE_TOOL`: let a call run that waits for somebody's approval."""

    call_id: CallId
    actor_id: ActorId
    fingerprint: str | None = None
    """Of the request that was looked at; `None`: of whatever waits now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectTool:
    """`REJECT_TOOL`: give a call up that waits for somebody's approval."""

    call_id: CallId
    actor_id: ActorId
    reason: str = ""
    """For the model to read; nothing needs to be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveToolResult:
    """`TOOL_RESULT`: what somebody outside has done for a call."""

    call_id: CallId
    output: str
    """As JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveToolError:
    """`TOOL_ERROR`: why somebody outside could not do what a call asks for."""

    call_id: CallId
    code: str
    message: str


CallCommand: TypeAlias = ApproveTool | RejectTool | GiveToolResult | GiveToolError
"""Commands on a call that waits for somebody outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Stop where the turn stands, to go on later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """End the turn for good."""

    is_orphaned: bool = False
    """As of a message: there is nobody who could end what is in flight."""


Request: TypeAlias = (
    PostMessage
    | Withdraw
    | RetryModel
    | Retry
    | ContinueNow
    | Resume
    | Replan
    | Run
    | UserInput
    | CallCommand
    | Pause
    | Cancel
)

# --- Reports -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginStep:
    """The shell is about to do what `next_step` asked for."""

    attempt_id: AttemptId
    judged: tuple[JudgedCall, ...] = ()
    """What was found out about calls that may not begin without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWrote:
    """Everything of the open answer so far; what is new of it is to be stored."""

    attempt_id: AttemptId
    text: str
    reasoning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidOutput:
    """A final answer that is what its agent declares."""

    value: str
    """As JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidOutput:
    """A final answer that is not."""

    problem: str
    """What is wrong with it, written for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswered:
    attempt_id: AttemptId
    answer: ModelAnswer
    next_attempt_id: AttemptId
    failure_id: FailureId
    """Used when the answer turns out to be none: empty, or cut with nothing usable."""
    can_compact: bool = False
    """As for `ModelGaveUp`: the answer may say that the window is full."""
    asked: str | None = None
    """A mark of the model that was asked, and of where; `None` where that is not known."""
    taken_call_ids: AbstractSet[str] = frozenset()
    """Call ids that already stand in the conversation and may not come back."""
    output: ValidOutput | InvalidOutput | None = None
    """How a final answer was read; `None` for other answers, and where the agent declares none."""
    question: str | None = None
    """What a hook that has seen the answer asks the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGaveUp:
    """A recognised failure of the model call."""

    attempt_id: AttemptId
    failure: ModelFailure
    failure_id: FailureId
    text: str = ""
    """What had been received of the answer when it broke."""
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    """What the request is known to have cost all the same."""
    chance: float = 1.0
    """Uniform in [0, 1): the part of the back-off that jitter lets stand."""
    next_attempt_id: AttemptId | None = None
    """For what the turn may do about it at once; `None`: nothing more is to begin."""
    can_compact: bool = False
    """Whether something was said before the turn that a summary could stand for."""
    asked: str | None = None
    """As for `ModelAnswered`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRefused:
    """The request itself was wrong, or the provider's policy refused it."""

    attempt_id: AttemptId
    refusal: RequestRefused
    failure_id: FailureId
    """Used where the turn waits instead of failing."""
    text: str = ""
    """What had been received of the answer all the same."""
    reasoning: str = ""
    next_attempt_id: AttemptId | None = None
    """As for `ModelGaveUp`."""
    asked: str | None = None
    """As for `ModelAnswered`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAsked:
    """A hook asks the user something."""

    attempt_id: AttemptId | None
    """`None`: before a step was begun."""
    question: str
    heard: int = 0
    """How many of the turn's unread messages it has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCrashed:
    """A fault of ours or of the agent's own code, not of the model: the turn cannot go on."""

    attempt_id: AttemptId | None
    """`None`: before a step was begun."""
    reason: Literal["internal_error", "hook_failed"] = "internal_error"
    text: str = ""
    """What had been received of the open answer."""
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    call_id: CallId
    outcome: Outcome
    content: str
    question: str | None = None
    """What the tool asks the user; the content is of no use then."""
    needs: ApprovalNeeded | InputNeeded | None = None
    """What the tool asks for before it does anything; the content is of no use then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsFinished:
    """One or more tools of the round have ended."""

    attempt_id: AttemptId
    finished: tuple[FinishedCall, ...]
    next_attempt_id: AttemptId | None
    """`None`: the worker is about to stop, so nothing more is to begin."""
    chance: float = 1.0
    """As for `ModelGaveUp`, should one of them be tried again."""
    judged: tuple[JudgedCall, ...] = ()
    """As for `BeginStep`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAbandoned:
    """What was in flight has been dropped because the turn's end or a pause was asked for."""

    attempt_id: AttemptId
    text: str = ""
    """Everything that had been received of the open answer."""
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLost:
    """The worker that had begun the open step is gone."""

    attempt_id: AttemptId
    next_attempt_id: AttemptId | None
    """`None`: hooks come first, so nothing is begun in the same commit."""
    text: str = ""
    """What is stored of the lost answer, if it was one; see `app.turn.partial.written`."""
    reasoning: str = ""
    looked_into: tuple[LookedInto, ...] = ()
    """What is known of the calls that were in flight; of one that is not among them nothing is."""
    is_cut_off: bool = False
    """Whether the step is this worker's own, which has ended it: it outlasted its grace."""
    cause: LostTo = "crash"
    """Whether that worker died, or stopped in order and left the step behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLost:
    """The worker that had the turn before has died; the first thing that the next one reports."""

    attempt_id: AttemptId | None
    """The step that it had begun, if it had."""
    deaths: int = 1
    """How many have died, this one included, since something new was stored of the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    """Somebody looked at the clock: waits whose time is over are to be dealt with (T91)."""


Report: TypeAlias = (
    BeginStep
    | ModelWrote
    | ModelAnswered
    | ModelGaveUp
    | ModelRefused
    | CompactionEnded
    | UserAsked
    | StepCrashed
    | ToolsFinished
    | StepAbandoned
    | StepLost
    | WorkerLost
    | TimePassed
)
Input: TypeAlias = Request | Report
