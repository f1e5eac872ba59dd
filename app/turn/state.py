"""What a turn is: its state, and what is true of it in every state.

`status` and `cursor` are properties of the state, so they can never disagree with it.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from app.turn.agent import Agent, HistoryWindow, Limits
from app.turn.counters import Counters
from app.turn.failures import FailureKind, FailureRecord
from app.turn.ids import AttemptId, Identity, TurnId
from app.turn.open_calls import OpenCall
from app.turn.queued_input import QueuedInput
from app.turn.states import (
    CallingModel,
    Cancelled,
    Compacting,
    Completed,
    Failed,
    LimitReached,
    Paused,
    Ready,
    RetryScheduled,
    RunningTools,
    State,
    ToolRetryScheduled,
    ToolsDue,
    WaitingForCalls,
    WaitingForModel,
    WaitingForUser,
    status_of,
)
from app.turn.status import TERMINAL, Cursor, LostTo, Status, SuspensionType
from app.turn.transcript import Usage, UserMessage
from app.turn.waits import WAITING, unheeded_end


@dataclass(frozen=True, kw_only=True)
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
    never_replay: bool = False
    """As of an agent; a turn may only be stricter than its own."""
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
    max_output_tokens: int | None = None
    """Of each answer from here on, once somebody has said so."""
    keep_turns: int | None = None
    """Instead of its agent's window: so many turns before it go into its requests."""
    fallback: int = 0
    """Which of its agent's models is asked: 0 its own, else so far down its list of fallbacks."""
    is_changed: bool = False
    """Model, limits or history were changed, and no answer has shown since that they will do."""
    asked: str | None = None
    """A mark of the model, and of where it was asked, when that last answered or failed."""
    has_compacted: bool = False
    """The history was summed up, or could not be, since the last answer or command."""
    told_at: int | None = None
    """The place of the last notice that told its model to write an answer again."""
    partial_at: int | None = None
    """The place of the last message that was not completed."""
    parts_from: int | None = None
    """The place of the open answer's first part, while it comes in several."""
    pauses: int = 0
    """Answers in a row that have paused."""
    continuations: int = 0
    """Answers in a row that were cut and continued."""
    empty_answers: int = 0
    """Answers in a row that said nothing."""
    came_back_from: FailureKind | None = None
    """The failure whose wait somebody has ended, until the model answers or the turn waits again.
    """
    lost_to: LostTo | None = None
    """What its last step was lost to, until a step ends."""

    def limits_under(self, agent: Agent) -> Limits:
        """The limits that hold for this turn."""
        return self.limits or agent.limits

    def model_under(self, agent: Agent) -> str | None:
        """The model it asks now; `None` for whatever the settings name."""
        if self.model is not None:
            return self.model
        return agent.fallbacks[self.fallback - 1] if self.fallback else agent.model

    def window_under(self, agent: Agent) -> HistoryWindow:
        """How much of what was said before it goes into its requests."""
        if self.keep_turns is None:
            return agent.history
        return replace(agent.history, turns=self.keep_turns)

    @property
    def status(self) -> Status:
        return status_of(self.state)

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
    def ends_partial(self) -> bool:
        """Whether the last thing said is a message that was not completed."""
        return self.partial_at is not None and self.partial_at == self.next_position - 1

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
            case (
                CallingModel(attempt_id=attempt_id)
                | Compacting(attempt_id=attempt_id)
                | RunningTools(attempt_id=attempt_id)
            ):
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
