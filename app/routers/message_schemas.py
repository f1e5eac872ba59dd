"""Messages and conversations, in and out."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from app.ports import Conversation, ConversationSummary, StoredMessage
from app.routers.wire import ID_PATTERN, Input, Line, Output, is_absent
from app.turn.inputs import WhenRunning
from app.turn.queued_input import QueuedInput
from app.turn.state import Turn
from app.turn.status import Status
from app.turn.transcript import (
    UNFINISHED,
    AssistantMessage,
    ClosingMessage,
    ContentPart,
    ImagePart,
    MessageError,
    NoticeMessage,
    QuestionMessage,
    SystemMessage,
    TextPart,
    ToolResult,
    UserMessage,
)

_LONGEST_TEXT = 200_000

Content = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT)]
Id = Annotated[str, Field(pattern=ID_PATTERN)]
ImageUrl = Annotated[str, Field(max_length=4_096, pattern=r"^https?://[^\s\x00-\x1f\x7f]+$")]


class TextInput(Input):
    type: Literal["text"]
    text: Content


class ImageInput(Input):
    type: Literal["image"]
    url: ImageUrl


PartInput = Annotated[TextInput | ImageInput, Field(discriminator="type")]
Parts = Annotated[list[PartInput], Field(min_length=1, max_length=100)]


def _form(content: object) -> str | None:
    """Text or parts, told from the JSON alone, so that what is wrong is said of one of them."""
    match content:
        case str():
            return "text"
        case list():
            return "parts"
        case _:
            return None


AnyContent = Annotated[
    Annotated[Content, Tag("text")] | Annotated[Parts, Tag("parts")],
    Discriminator(
        _form,
        custom_error_type="content_form",
        custom_error_message="Input should be a text, or a list of parts",
    ),
]


def _lacks_content(said: object) -> bool:
    return isinstance(said, dict) and "content" not in said


class SaidBody(Input):
    """What a user says."""

    content: AnyContent = Field(description="Text, or parts: text and images by URL.")
    message_id: Id | None = Field(
        default=None,
        description="Makes the message safe to send twice. Made by the server when absent.",
    )

    @model_validator(mode="before")
    @classmethod
    def _has_content(cls, said: object) -> object:
        if _lacks_content(said):
            raise PydanticCustomError("messages_required", "a message needs content")
        return said

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not any(_is_said(part) for part in self.parts()):
            message = "content is blank"
            raise ValueError(message)
        return self

    def parts(self) -> tuple[ContentPart, ...]:
        """What is said; blank texts between parts say nothing, and providers refuse them."""
        if isinstance(self.content, str):
            return (TextPart(text=self.content),)
        parts = (
            TextPart(text=part.text) if isinstance(part, TextInput) else ImagePart(url=part.url)
            for part in self.content
        )
        return tuple(part for part in parts if _is_said(part))


class MessageBody(SaidBody):
    """A user's message to a conversation."""

    agent_id: Id | None = Field(default=None, description="Who answers a new conversation.")
    hold: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="Opens a turn that no worker takes before `POST /turns/{turnId}/run`.",
    )
    never_replay: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="Opens a turn of which no tool that a crash finds at work is run again by "
        "itself, whatever its agent allows.",
    )
    when_running: WhenRunning = Field(
        default="reject",
        description="While the conversation's turn is READY or RUNNING: refuse the message, let it "
        "wait for the turn's end, or say it at the turn's next boundary. One that waits takes it "
        "at once.",
    )
    recover_first: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="Where the worker of a RUNNING turn is gone: the turn is brought to its end "
        "first and the message said behind it, instead of giving up what is open.",
    )


def _is_said(part: ContentPart) -> bool:
    return isinstance(part, ImagePart) or bool(part.text.strip())


class ConversationBody(Input):
    agent_id: Id | None = None
    title: Annotated[Line, Field(max_length=200)] | None = None


class ToolCallOutput(Output):
    call_id: str
    tool_name: str
    arguments: str


class MessageErrorOutput(Output):
    reason: str
    message: str
    metadata: dict[str, Any]
    """`failureId` of the failure that broke it off, or `recovered` and `mode` of its recovery."""


class MessageOutput(Output):
    """One message of a conversation; fields that its role does not have are absent."""

    position: int
    turn_id: str | None
    """Null: it was brought along, from another service or by a fork."""
    role: Literal["user", "assistant", "tool", "closing", "notice", "question", "system"]
    content: str | list[dict[str, Any]]
    message_id: str | None = Field(default=None, exclude_if=is_absent)
    reasoning: str | None = Field(default=None, exclude_if=is_absent)
    tool_calls: list[ToolCallOutput] | None = Field(default=None, exclude_if=is_absent)
    stop_reason: str | None = Field(default=None, exclude_if=is_absent)
    partial: bool | None = Field(default=None, exclude_if=is_absent)
    """True of an assistant message that was begun and not completed; it is no answer."""
    error: MessageErrorOutput | None = Field(default=None, exclude_if=is_absent)
    """Why it was not completed."""
    call_id: str | None = Field(default=None, exclude_if=is_absent)
    tool_name: str | None = Field(default=None, exclude_if=is_absent)
    outcome: str | None = Field(default=None, exclude_if=is_absent)
    created_at: datetime


class QueuedOutput(Output):
    """A message that waits while the conversation's turn is at work."""

    message_id: str
    mode: Literal["queue", "steer"]
    queued_at: datetime
    content: str | list[dict[str, Any]]


class MessagePage(Output):
    items: list[MessageOutput]
    next_cursor: str | None


class TurnReference(Output):
    turn_id: str
    status: Status
    held: bool
    """Whether it is READY and begins when it is told to run."""
    failure_id: str | None


class ConversationOutput(Output):
    conversation_id: str
    agent_id: str
    title: str
    active_turn: TurnReference | None
    last_turn: TurnReference | None
    reverted_to: str | None
    """The id of the message behind which a revert hides everything, as long as it does."""
    created_at: datetime
    updated_at: datetime


class ConversationPage(Output):
    items: list[ConversationOutput]
    next_cursor: str | None


def content_output(content: tuple[ContentPart, ...]) -> str | list[dict[str, Any]]:
    """As it was sent: one text is a string, anything else is parts."""
    if len(content) == 1 and isinstance(content[0], TextPart):
        return content[0].text
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "image", "url": part.url}
        for part in content
    ]


def queued_output(queued: QueuedInput) -> dict[str, Any]:
    """A message of a queue, as turns and events carry it."""
    return {
        "messageId": queued.message.message_id,
        "mode": queued.mode,
        "queuedAt": queued.queued_at,
        "content": content_output(queued.message.content),
    }


def error_output(error: MessageError) -> MessageErrorOutput:
    return MessageErrorOutput(
        reason=error.reason, message=error.message, metadata=dict(_metadata(error))
    )


def _metadata(error: MessageError) -> Mapping[str, Any]:
    """Recovered is what has no other error: it stands ready for a resume (T101, case 72)."""
    if error == UNFINISHED:
        return {"recovered": True, "mode": "resume"}
    return {} if error.failure_id is None else {"failureId": error.failure_id}


def message_output(stored: StoredMessage) -> MessageOutput:
    return MessageOutput(
        position=stored.position,
        turn_id=stored.turn_id,
        created_at=stored.created_at,
        **_said(stored),
    )


def _said(stored: StoredMessage) -> dict[str, Any]:
    match stored.message:
        case UserMessage(message_id=message_id, content=content):
            return {
                "role": "user",
                "message_id": message_id,
                "content": content_output(content),
            }
        case AssistantMessage() as message:
            return {
                "role": "assistant",
                "content": message.text,
                "reasoning": message.reasoning or None,
                "tool_calls": [
                    ToolCallOutput(
                        call_id=call.call_id, tool_name=call.tool_name, arguments=call.arguments
                    )
                    for call in message.tool_calls
                ]
                or None,
                "stop_reason": message.stop_reason,
                "partial": message.is_partial or None,
                "error": message.error and error_output(message.error),
            }
        case ToolResult() as result:
            return {
                "role": "tool",
                "content": result.content,
                "call_id": result.call_id,
                "tool_name": result.tool_name,
                "outcome": result.outcome,
            }
        case (
            ClosingMessage(text=text)
            | NoticeMessage(text=text)
            | QuestionMessage(text=text)
            | SystemMessage(text=text)
        ):
            return {"role": stored.message.role, "content": text}


def conversation_output(summary: ConversationSummary) -> ConversationOutput:
    conversation: Conversation = summary.conversation
    return ConversationOutput(
        conversation_id=conversation.conversation_id,
        agent_id=conversation.agent_id,
        title=conversation.title,
        active_turn=_reference(summary.active),
        last_turn=_reference(summary.last),
        reverted_to=conversation.reverted_to,
        created_at=conversation.created_at,
        updated_at=conversation.updated_at,
    )


def _reference(turn: Turn | None) -> TurnReference | None:
    if turn is None:
        return None
    failure = turn.current_failure
    return TurnReference(
        turn_id=turn.identity.turn_id,
        status=turn.status,
        held=turn.is_held,
        failure_id=None if failure is None else failure.failure_id,
    )
