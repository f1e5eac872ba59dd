"""Messages in the forms of two wires, read as history.

They carry whatever their services add, so unknown fields are passed over; a part that no history of
ours can hold (sound, a file, a picture that is at no address) is refused. Neither form says why an
answer ended, so each counts as finished, but for a refusal.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema
from typing_extensions import override

from app.routers.message_schemas import ImageUrl
from app.routers.wire import Line
from app.services.imports import brought_answer, brought_call, brought_result
from app.turn.ids import MessageId
from app.turn.transcript import (
    ContentPart,
    ImagePart,
    Message,
    StopReason,
    SystemMessage,
    TextPart,
    UserMessage,
    text_of,
)

CallIdText = Annotated[Line, Field(max_length=256)]
"""A call's id as another service gave it; an empty one is none."""
ToolName = Annotated[Line, Field(max_length=256)]


class _Foreign(BaseModel):
    """Said in another service's form: what is not known of it is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    @classmethod
    @override
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        """Described where it is at home, so here it is an object."""
        return {"type": "object", "description": cls.__doc__ or ""}


class _Text(_Foreign):
    type: Literal["text"]
    text: str

    def part(self) -> ContentPart:
        return TextPart(text=self.text)


# --- OpenAI chat ---------------------------------------------------------------------------------


class _Address(_Foreign):
    url: ImageUrl


class _OpenAiImage(_Foreign):
    type: Literal["image_url"]
    image_url: _Address

    def part(self) -> ContentPart:
        return ImagePart(url=self.image_url.url)


class _OpenAiRefusal(_Foreign):
    type: Literal["refusal"]
    refusal: str

    def part(self) -> ContentPart:
        return TextPart(text=self.refusal)


_OpenAiPart: TypeAlias = Annotated[
    _Text | _OpenAiImage | _OpenAiRefusal, Field(discriminator="type")
]


class _Function(_Foreign):
    name: ToolName = ""
    arguments: str | dict[str, Any] | None = None


class _OpenAiCall(_Foreign):
    id: CallIdText | None = None
    function: _Function


class OpenAiMessage(_Foreign):
    """A message of an OpenAI chat request."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_OpenAiPart] | None = None
    tool_calls: list[_OpenAiCall] | None = None
    tool_call_id: CallIdText | None = None
    refusal: str | None = None
    reasoning_content: str | None = None

    def messages(self) -> Iterator[Message]:
        """What it is as history: one message."""
        content = _parts(self.content)
        match self.role:
            case "system" | "developer":
                yield SystemMessage(text=text_of(content))
            case "user":
                yield UserMessage(message_id=MessageId(""), content=content)
            case "assistant":
                yield self._answer(text_of(content))
            case "tool":
                yield brought_result(self.tool_call_id, text_of(content))

    def _answer(self, text: str) -> Message:
        return brought_answer(
            text or self.refusal,
            [
                brought_call(call.id, call.function.name, call.function.arguments)
                for call in self.tool_calls or ()
            ],
            StopReason.REFUSAL if self.refusal and not text else None,
            self.reasoning_content,
        )


def _parts(
    content: str | Sequence[_Text | _OpenAiImage | _OpenAiRefusal] | None,
) -> tuple[ContentPart, ...]:
    if content is None or isinstance(content, str):
        return (TextPart(text=content or ""),)
    return tuple(part.part() for part in content)


# --- Anthropic messages --------------------------------------------------------------------------


class _Source(_Foreign):
    type: Literal["url"]
    url: ImageUrl


class _AnthropicImage(_Foreign):
    type: Literal["image"]
    source: _Source

    def part(self) -> ContentPart:
        return ImagePart(url=self.source.url)


class _Thinking(_Foreign):
    type: Literal["thinking"]
    thinking: str


class _RedactedThinking(_Foreign):
    type: Literal["redacted_thinking"]


class _ToolUse(_Foreign):
    type: Literal["tool_use"]
    id: CallIdText | None = None
    name: ToolName = ""
    input: dict[str, Any] | None = None


_Said: TypeAlias = Annotated[_Text | _AnthropicImage, Field(discriminator="type")]


class _ToolResult(_Foreign):
    type: Literal["tool_result"]
    tool_use_id: CallIdText | None = None
    content: str | list[_Said] | None = None
    is_error: bool | None = None


_Block: TypeAlias = Annotated[
    _Text | _AnthropicImage | _Thinking | _RedactedThinking | _ToolUse | _ToolResult,
    Field(discriminator="type"),
]


class AnthropicMessage(_Foreign):
    """A message of an Anthropic messages request."""

    role: Literal["system", "user", "assistant"]
    content: str | list[_Block] | None = None

    def messages(self) -> Iterator[Message]:
        """What it is as history: each tool result, then what is said beside them, if anything."""
        blocks = _blocks(self.content)
        results = [block for block in blocks if isinstance(block, _ToolResult)]
        for result in results:
            content = text_of(_content(_blocks(result.content)))
            yield brought_result(result.tool_use_id, content, is_error=bool(result.is_error))
        if results and all(isinstance(block, _ToolResult) for block in blocks):
            return
        match self.role:
            case "system":
                yield SystemMessage(text=text_of(_content(blocks)))
            case "user":
                yield UserMessage(message_id=MessageId(""), content=_content(blocks))
            case "assistant":
                yield _answer(blocks)


_AnyBlock: TypeAlias = (
    _Text | _AnthropicImage | _Thinking | _RedactedThinking | _ToolUse | _ToolResult
)


def _blocks(content: str | Sequence[_AnyBlock] | None) -> Sequence[_AnyBlock]:
    if content is None or isinstance(content, str):
        return [_Text(type="text", text=content or "")]
    return content


def _content(blocks: Sequence[_AnyBlock]) -> tuple[ContentPart, ...]:
    return tuple(block.part() for block in blocks if isinstance(block, _Text | _AnthropicImage))


def _answer(blocks: Sequence[_AnyBlock]) -> Message:
    return brought_answer(
        text_of(_content(blocks)),
        [brought_call(b.id, b.name, b.input) for b in blocks if isinstance(b, _ToolUse)],
        None,
        "".join(block.thinking for block in blocks if isinstance(block, _Thinking)),
    )
