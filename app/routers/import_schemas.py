"""Conversations with a history from elsewhere, as callers send them."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from app.routers.import_wires import AnthropicMessage, CallIdText, OpenAiMessage, ToolName
from app.routers.message_schemas import ConversationBody, ImageUrl
from app.routers.wire import Input
from app.services.imports import Import, brought_answer, brought_call, brought_result
from app.turn.ids import AgentId, MessageId
from app.turn.transcript import (
    ContentPart,
    ImagePart,
    Message,
    NoticeMessage,
    StopReason,
    SystemMessage,
    TextPart,
    UserMessage,
    text_of,
)

_MOST_MESSAGES = 10_000


class BroughtText(Input):
    type: Literal["text"]
    text: str


class BroughtImage(Input):
    type: Literal["image"]
    url: ImageUrl


class BroughtCall(Input):
    """A tool call; its arguments are an object, or the text of one."""

    id: CallIdText
    name: ToolName
    arguments: dict[str, Any] | str | None = None


class BroughtMessage(Input):
    """One message of a history, in any order; what its role has no use for is null or absent."""

    role: Literal["user", "assistant", "tool", "system", "notice"]
    content: (
        str | list[Annotated[BroughtText | BroughtImage, Field(discriminator="type")]] | None
    ) = Field(default=None, description="Text or parts; it may be empty.")
    tool_calls: list[BroughtCall] | None = Field(default=None, description="Of `assistant`.")
    tool_call_id: CallIdText | None = Field(default=None, description="Of `tool`.")
    stop_reason: StopReason | None = Field(
        default=None, description="Of `assistant`; null: it ended normally."
    )
    reasoning: str | None = Field(default=None, description="Of `assistant`.")

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        of_assistant = (self.tool_calls, self.stop_reason, self.reasoning)
        if self.role != "assistant" and any(of_assistant):
            message = f"toolCalls, stopReason and reasoning are of assistant, not of {self.role}"
            raise ValueError(message)
        if self.role != "tool" and self.tool_call_id is not None:
            message = f"toolCallId is of tool, not of {self.role}"
            raise ValueError(message)
        return self

    def messages(self) -> Iterator[Message]:
        """What it is as history: one message."""
        text = text_of(self._parts())
        match self.role:
            case "user":
                yield UserMessage(message_id=MessageId(""), content=self._parts())
            case "assistant":
                calls = [
                    brought_call(call.id, call.name, call.arguments)
                    for call in self.tool_calls or ()
                ]
                yield brought_answer(text, calls, self.stop_reason, self.reasoning)
            case "tool":
                yield brought_result(self.tool_call_id, text)
            case "system":
                yield SystemMessage(text=text)
            case "notice":
                yield NoticeMessage(text=text, cause="imported")

    def _parts(self) -> tuple[ContentPart, ...]:
        if self.content is None or isinstance(self.content, str):
            return (TextPart(text=self.content or ""),)
        return tuple(
            TextPart(text=part.text) if isinstance(part, BroughtText) else ImagePart(url=part.url)
            for part in self.content
        )


class NewConversationBody(ConversationBody):
    """A new conversation, which may bring a history along."""

    format: Literal["turnkeeper"] = "turnkeeper"
    history: Annotated[list[BroughtMessage], Field(max_length=_MOST_MESSAGES)] | None = None


class OpenAiConversationBody(ConversationBody):
    """A new conversation with a history in the form of OpenAI chat messages."""

    format: Literal["openai"]
    history: Annotated[list[OpenAiMessage], Field(max_length=_MOST_MESSAGES)]


class AnthropicConversationBody(ConversationBody):
    """A new conversation with a history in the form of Anthropic messages."""

    format: Literal["anthropic"]
    history: Annotated[list[AnthropicMessage], Field(max_length=_MOST_MESSAGES)]


def _format(body: object) -> str | None:
    """Told from the JSON alone, so that what is wrong is said of one form."""
    match body:
        case NewConversationBody() | {"format": "turnkeeper"}:
            return "turnkeeper"
        case {"format": "openai"}:
            return "openai"
        case {"format": "anthropic"}:
            return "anthropic"
        case dict() if "format" not in body:
            return "turnkeeper"
        case _:
            return None


AnyNewConversation: TypeAlias = Annotated[
    Annotated[NewConversationBody, Tag("turnkeeper")]
    | Annotated[OpenAiConversationBody, Tag("openai")]
    | Annotated[AnthropicConversationBody, Tag("anthropic")],
    Discriminator(
        _format,
        custom_error_type="format_unknown",
        custom_error_message="say an object whose format is turnkeeper, openai or anthropic",
    ),
]


def import_in(
    body: NewConversationBody | OpenAiConversationBody | AnthropicConversationBody,
) -> Import | None:
    """The history that the body brings along; `None` when it brings none."""
    if body.history is None:
        return None
    return Import(
        history=tuple(message for given in body.history for message in given.messages()),
        agent_id=None if body.agent_id is None else AgentId(body.agent_id),
        title=body.title,
    )
