"""What has been said: the messages of a conversation, as values.

A turn does not hold its transcript. It appends to it by position, so that the cost of a step does
not grow with the history. A round of tool calls reserves one position per call right behind the
message that asked for them: results may be stored as they come and still stand in declared order.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from app.turn.ids import CallId, FailureId, MessageId


class StopReason(StrEnum):
    """Why the model stopped, in the words of `StopReason` of the API."""

    END_TURN = "END_TURN"
    TOOL_USE = "TOOL_USE"
    MAX_OUTPUT = "MAX_OUTPUT"
    CONTEXT_FULL = "CONTEXT_FULL"
    REFUSAL = "REFUSAL"
    PAUSED = "PAUSED"
    INTERRUPTED = "INTERRUPTED"
    OTHER = "OTHER"


FINISHED = frozenset({StopReason.END_TURN, StopReason.TOOL_USE})
"""The model ended its answer by finishing it."""


class Outcome(StrEnum):
    """What became of a tool call, as its result says it."""

    COMPLETED = "completed"
    ERROR = "error"
    NOT_STARTED = "not_started"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"
    EXPIRED = "expired"


class InterruptionReason(StrEnum):
    """Why a call was answered without a result of its tool."""

    USER_MESSAGE = "user_message"
    REPLANNED = "replanned"
    TURN_CANCELLED = "turn_cancelled"
    TURN_FAILED = "turn_failed"
    LIMIT_REACHED = "limit_reached"
    WORKER_LOST = "worker_lost"
    EARLIER_CALL_FAILED = "earlier_call_failed"
    UNANSWERED = "unanswered"
    WAIT_EXPIRED = "wait_expired"
    CUT_OFF = "cut_off"
    EARLIER_CALL_INTERRUPTED = "earlier_call_interrupted"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    url: str
    kind: Literal["image"] = "image"


ContentPart: TypeAlias = TextPart | ImagePart


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's wish to have a tool run."""

    call_id: CallId
    tool_name: str
    arguments: str
    """A JSON object, as text: the very text the model wrote where that was an object."""
    problem: str | None = None
    """Why the arguments cannot be used, when they cannot: the tool is then not entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model request; `None` where the provider did not say.

    `input_tokens` is everything sent, cached or not; `output_tokens` includes reasoning.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What the model said, complete."""

    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    """As on the wire: ids may be empty or repeated here; the core makes them unique."""
    stop_reason: StopReason = StopReason.END_TURN
    raw_stop: str | None = None
    """The provider's own stop value, for operators."""
    usage: Usage = Usage()
    opaque: str = ""
    """What must go back unchanged with it; only the wire that made it reads this."""
    provider: str | None = None
    """Who gave it, as a failure names them."""
    model: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether it ended by itself and asks for nothing."""
        return not self.tool_calls and self.stop_reason in FINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    message_id: MessageId
    content: tuple[ContentPart, ...]
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageError:
    """Why an assistant message was begun and not completed."""

    reason: str
    message: str
    """For whoever reads the conversation: no provider's words."""
    failure_id: FailureId | None = None
    """The failure that broke it off; `None`: it was closed by recovery, to be resumed."""


UNFINISHED = MessageError(
    reason="UnfinishedAssistantMessage",
    message="Assistant message was not completed before recovery.",
)
"""Of a message that recovery has closed (T101)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = StopReason.END_TURN
    reasoning: str = ""
    opaque: str = ""
    """As in `ModelAnswer`: for its own provider and model, byte for byte, or for nobody."""
    error: MessageError | None = None
    """Of a message that was not completed: it is a partial one, and no answer (C8)."""
    role: Literal["assistant"] = "assistant"

    @property
    def is_partial(self) -> bool:
        """Whether it was begun and not completed; imported ones may be so without an error."""
        return self.stop_reason is StopReason.INTERRUPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    call_id: CallId
    tool_name: str
    outcome: Outcome
    content: str
    role: Literal["tool"] = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingMessage:
    """Written by the service itself when a turn ends abnormally, so that the history is whole."""

    text: str
    role: Literal["closing"] = "closing"


NoticeCause: TypeAlias = Literal[
    "output_invalid", "question_expired", "retry_response", "continue_response", "imported"
]
"""Why the service speaks to the model; `imported`: another service did, in a history from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeMessage:
    """Said to the model by the service itself; a provider sees it as a user's message."""

    text: str
    cause: NoticeCause
    role: Literal["notice"] = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionMessage:
    """Asked of the user by a tool or a hook; a model sees it as something it has said."""

    text: str
    role: Literal["question"] = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    """Instructions of another service, in a history from there; kept, and never sent to a model."""

    text: str
    role: Literal["system"] = "system"


Message: TypeAlias = (
    UserMessage
    | AssistantMessage
    | ToolResult
    | ClosingMessage
    | NoticeMessage
    | QuestionMessage
    | SystemMessage
)


def text_of(content: tuple[ContentPart, ...]) -> str:
    """The text parts, joined; images contribute nothing."""
    return "".join(part.text for part in content if isinstance(part, TextPart))
