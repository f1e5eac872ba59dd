"""Events of an Anthropic answer in, deltas and the whole answer out; no I/O.

The type inside the data decides what an event is; where a relay has dropped it, its shape does.
The same code reads a streamed answer, a whole message under 200, and the closing frame in which
some providers repeat everything they have streamed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.ports import ReasoningDelta, TextDelta
from app.providers.answer_reading import Delta, Reading
from app.providers.anthropic_blocks import KIND_OF_DELTA, TEXT, THINKING, TOOL_USE, Block, opened
from app.providers.anthropic_plan import plan_of
from app.providers.anthropic_usage import AnthropicFigures
from app.providers.json_frames import MAX_ANSWER_CHARACTERS, AnswerTooLongError
from app.providers.stop_values import stop_reason
from app.providers.text_pieces import TextPieces
from app.providers.tool_call_parts import MAX_CALLS, TooManyCallsError, tool_call
from app.providers.wire_json import (
    JsonObject,
    as_array,
    as_count,
    as_object,
    as_text,
    is_array,
    is_object,
)
from app.turn.transcript import ModelAnswer, StopReason


@dataclass(slots=True)
class AnthropicAnswer:
    """An `AnswerBuilder` for messages."""

    is_done: bool = False
    raw_stop: str | None = None
    _message_id: str = ""
    _blocks: list[Block] = field(default_factory=list[Block])
    _at: dict[int | None, Block] = field(default_factory=dict[int | None, Block])
    """The block that an index means now; where there are no indexes, the last one."""
    _text: TextPieces = field(default_factory=TextPieces)
    _reasoning: TextPieces = field(default_factory=TextPieces)
    _figures: AnthropicFigures = field(default_factory=AnthropicFigures)
    _has_begun: bool = False
    _is_spliced: bool = False
    _was_stopped: bool = False
    _characters: int = 0

    @property
    def is_ending(self) -> bool:
        """Behind a stop reason some send nothing but pings, and no end."""
        return self.is_done or self._was_stopped

    @property
    def has_content(self) -> bool:
        """A message has begun, or a part of one has come."""
        return self._has_begun

    @property
    def has_calls(self) -> bool:
        """A block of a tool call has begun."""
        return any(block.kind == TOOL_USE for block in self._blocks)

    @property
    def is_whole(self) -> bool:
        """Whether the provider has said how the answer ends."""
        has_ended = self.is_done and self._has_begun and not self._is_spliced
        return self.raw_stop is not None or has_ended

    def recognises(self, chunk: JsonObject) -> bool:
        """An event with a type of its own, other than an error's."""
        kind = as_text(chunk.get("type")) or _type_by_shape(chunk)
        return bool(kind) and "error" not in kind and "exception" not in kind.lower()

    def add(self, chunk: JsonObject) -> Iterator[Delta]:
        """Take one event, yield what it adds for a reader."""
        for holder in (chunk, as_object(chunk.get("message")), as_object(chunk.get("delta"))):
            self._figures.take_from(holder)
        if not self.is_done:
            yield from self._take(as_text(chunk.get("type")) or _type_by_shape(chunk), chunk)

    def flush(self) -> Iterator[Delta]:
        """Yield what blocks that were never closed began with."""
        for block in self._blocks:
            yield from self._shown(block, block.release())

    def finished(self, *, is_broken: bool) -> Reading:
        """The answer as far as it came."""
        blocks = self._ordered()
        calls = [block for block in blocks if block.kind == TOOL_USE]
        reason = StopReason.INTERRUPTED
        if self.is_whole and not is_broken:
            reason = stop_reason(self.raw_stop or "end_turn", has_calls=bool(calls))
        was_cut = reason in {StopReason.MAX_OUTPUT, StopReason.INTERRUPTED}
        answer = ModelAnswer(
            text=self._text.whole(),
            reasoning=self._reasoning.whole(),
            tool_calls=tuple(
                tool_call(
                    as_text(call.start.get("id")),
                    as_text(call.start.get("name")),
                    call.arguments(),
                    was_cut=was_cut,
                )
                for call in calls
            ),
            stop_reason=reason,
            raw_stop=self.raw_stop,
            usage=self._figures.usage(),
        )
        return Reading(
            answer=answer,
            argument_texts=tuple(call.arguments() for call in calls),
            signatures=tuple(block.opaque for block in blocks if block.opaque),
            reasoning_tokens=self._figures.reasoning,
            to_return=plan_of(blocks, is_paused=reason is StopReason.PAUSED),
        )

    def _take(self, kind: str, event: JsonObject) -> Iterator[Delta]:
        match kind:
            case "message_start":
                yield from self._begin(as_object(event.get("message")))
            case "message":
                yield from self._take_whole(event)
            case "content_block_start":
                yield from self._open(
                    as_count(event.get("index")), as_object(event.get("content_block"))
                )
            case "content_block_delta":
                yield from self._grow(as_count(event.get("index")), as_object(event.get("delta")))
            case "content_block_stop":
                yield from self._close(as_count(event.get("index")))
            case _:
                self._end(kind, event)

    def _end(self, kind: str, event: JsonObject) -> None:
        if kind == "message_delta":
            self._note_stop(as_object(event.get("delta")), event)
            self._was_stopped = self.raw_stop is not None
        self.is_done = kind == "message_stop"

    def _begin(self, message: JsonObject) -> Iterator[Delta]:
        """A second beginning of the same message is a repeat; of another, two answers in one."""
        message_id = as_text(message.get("id"))
        if self._message_id and message_id not in ("", self._message_id):
            self._is_spliced = self.is_done = True
            return
        self._message_id = message_id or self._message_id
        if not self._blocks:
            yield from self._open_all(_content(message))
        self._has_begun = True
        self._note_stop(message)

    def _take_whole(self, message: JsonObject) -> Iterator[Delta]:
        if not self._blocks:
            yield from self._open_all(_content(message))
        self._has_begun = True
        self._note_stop(message)
        self.is_done = True

    def _open_all(self, content: Sequence[object]) -> Iterator[Delta]:
        for index, entry in enumerate(content):
            yield from self._open(index, as_object(entry))
            yield from self._close(index)

    def _open(self, index: int | None, start: JsonObject) -> Iterator[Delta]:
        self._has_begun = True
        if index in self._at:
            yield from self._close(index)
        block = opened(start, index)
        self._blocks.append(block)
        self._at[index] = block
        if len(self._blocks) > MAX_CALLS:
            raise TooManyCallsError

    def _grow(self, index: int | None, delta: JsonObject) -> Iterator[Delta]:
        kind = KIND_OF_DELTA.get(as_text(delta.get("type")))
        block = self._at.get(index)
        if block is None or (block.is_closed and kind not in (None, block.kind)):
            if kind is None:
                return
            yield from self._open(index, {"type": kind})
            block = self._at[index]
        self._count(block.weight_of(delta))
        yield from self._shown(block, block.take(delta))

    def _close(self, index: int | None) -> Iterator[Delta]:
        block = self._at.get(index)
        if block is not None:
            block.is_closed = True
            yield from self._shown(block, block.release())

    def _shown(self, block: Block, text: str) -> Iterator[Delta]:
        if block.kind == TEXT and (shown := self._text.take(text)):
            yield TextDelta(text=shown)
        if block.kind == THINKING and (shown := self._reasoning.take(text)):
            yield ReasoningDelta(text=shown)

    def _note_stop(self, *holders: JsonObject) -> None:
        for holder in holders:
            self.raw_stop = as_text(holder.get("stop_reason")) or self.raw_stop

    def _ordered(self) -> list[Block]:
        if any(block.index is None for block in self._blocks):
            return self._blocks
        return sorted(self._blocks, key=lambda block: block.index or 0)

    def _count(self, characters: int) -> None:
        self._characters += characters
        if self._characters > MAX_ANSWER_CHARACTERS:
            raise AnswerTooLongError


def _content(message: JsonObject) -> Sequence[object]:
    """The blocks of a message; some write a lone text without a block round it."""
    content = message.get("content")
    return [{"type": TEXT, "text": content}] if isinstance(content, str) else as_array(content)


def _type_by_shape(chunk: JsonObject) -> str:
    """What an event is whose type was lost on the way."""
    delta = chunk.get("delta")
    if is_object(chunk.get("message")):
        return "message_start"
    if is_object(chunk.get("content_block")):
        return "content_block_start"
    if is_object(delta):
        return "content_block_delta" if as_text(delta.get("type")) else "message_delta"
    return "message" if is_array(chunk.get("content")) else ""
