"""Chunks of an OpenAI-compatible answer in, deltas and the whole answer out; no I/O.

The same code reads a streamed answer, a JSON body under 200, and the closing frame in which some
providers repeat everything they have streamed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from app.ports import ReasoningDelta, TextDelta
from app.providers.openai_usage import UsageFigures
from app.providers.stop_values import stop_reason
from app.providers.think_tags import Part, ThinkTags
from app.providers.tool_call_parts import ToolCallParts
from app.providers.wire_json import (
    JsonObject,
    as_array,
    as_object,
    as_text,
    has_surrogate,
    is_object,
    mended,
)
from app.turn.transcript import ModelAnswer, StopReason

MAX_ANSWER_CHARACTERS = 32 * 1024 * 1024


class AnswerTooLongError(Exception):
    """An answer holds more than 32 Mi characters."""


@dataclass(slots=True)
class _Pieces:
    """A text that comes in pieces, whole characters out."""

    written: list[str] = field(default_factory=list[str])
    _half: str = ""

    def take(self, text: str) -> str:
        """What can be shown now; the first half of a surrogate pair waits for its second."""
        text = self._half + text
        self._half = ""
        if has_surrogate(text):
            if "\ud800" <= text[-1] <= "\udbff":
                text, self._half = text[:-1], text[-1]
            text = mended(text)
        if text:
            self.written.append(text)
        return text

    def whole(self) -> str:
        return mended("".join((*self.written, self._half)))


@dataclass(slots=True)
class AnswerBuilder:
    """Collects one answer."""

    calls: ToolCallParts = field(default_factory=ToolCallParts)
    is_done: bool = False
    """The provider said that nothing follows."""
    raw_stop: str | None = None
    has_choice: bool = False
    """At least one chunk carried a part of an answer."""
    _text: _Pieces = field(default_factory=_Pieces)
    _reasoning: _Pieces = field(default_factory=_Pieces)
    _tags: ThinkTags = field(default_factory=ThinkTags)
    _usage: UsageFigures = field(default_factory=UsageFigures)
    _signatures: list[str] = field(default_factory=list[str])
    _was_refused: bool = False
    _has_reasoning_field: bool = False
    _characters: int = 0

    def add(self, chunk: JsonObject) -> Iterator[TextDelta | ReasoningDelta]:
        """Take one chunk, yield what it adds for a reader.

        After the end only usage is taken.

        Raises:
            AnswerTooLongError: The answer has grown over 32 Mi characters.
        """
        self._usage.take(as_object(chunk.get("usage")))
        self._usage.take(as_object(as_object(chunk.get("x_groq")).get("usage")))
        had_choice = self.has_choice
        for choice in as_array(chunk.get("choices")):
            if is_object(choice) and not choice.get("index"):
                self._usage.take(as_object(choice.get("usage")))
                if not self.is_done:
                    yield from self._add_choice(choice, had_choice=had_choice)

    def flush(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield what was held back in case it was half of a tag; for the end of the stream."""
        yield from self._shown(self._tags.close())

    def finished(self) -> ModelAnswer:
        """The answer as far as it came; `INTERRUPTED` when nothing says that it is whole."""
        reason = self._stop_reason()
        was_cut = reason in {StopReason.MAX_OUTPUT, StopReason.INTERRUPTED}
        return ModelAnswer(
            text=self._text.whole(),
            reasoning=self._reasoning.whole(),
            tool_calls=self.calls.finished(was_cut=was_cut),
            stop_reason=reason,
            raw_stop=self.raw_stop,
            usage=self._usage.usage(),
            signatures=(*self._signatures, *self.calls.signatures()),
        )

    @property
    def is_whole(self) -> bool:
        """Whether the provider has said how the answer ends."""
        return self.raw_stop is not None or (self.is_done and self.has_choice)

    def _stop_reason(self) -> StopReason:
        if not self.is_whole:
            return StopReason.INTERRUPTED
        reason = stop_reason(self.raw_stop or "stop", has_calls=bool(self.calls))
        refuses = self._was_refused and reason is StopReason.END_TURN
        return StopReason.REFUSAL if refuses else reason

    def _add_choice(
        self, choice: JsonObject, *, had_choice: bool
    ) -> Iterator[TextDelta | ReasoningDelta]:
        delta = choice.get("delta")
        self.has_choice = True
        self.raw_stop = as_text(choice.get("finish_reason")) or self.raw_stop
        if is_object(delta) or not had_choice:  # a whole message behind deltas repeats them
            part = as_object(delta if is_object(delta) else choice.get("message"))
            yield from self._add_reasoning(part)
            yield from self._add_content(part)
            self._add_calls(part)

    def _add_content(self, part: JsonObject) -> Iterator[TextDelta | ReasoningDelta]:
        for kind, text in _content_parts(part.get("content")):
            yield from self._shown(self._tags.feed(text) if kind == "text" else [(kind, text)])
        refusal = as_text(part.get("refusal"))
        if refusal:
            self._was_refused = True
            yield from self._shown([("text", refusal)])

    def _add_reasoning(self, part: JsonObject) -> Iterator[TextDelta | ReasoningDelta]:
        details = [as_object(detail) for detail in as_array(part.get("reasoning_details"))]
        text = as_text(part.get("reasoning_content")) or as_text(part.get("reasoning"))
        text = text or "".join(_detail_text(detail) for detail in details)
        self._signatures.extend(sign for detail in details for sign in _detail_signatures(detail))
        if text:
            self._has_reasoning_field = True
            yield from self._shown([("reasoning", text)], from_tags=False)

    def _add_calls(self, part: JsonObject) -> None:
        self._count(self.calls.add(as_array(part.get("tool_calls"))))
        legacy = part.get("function_call")
        if is_object(legacy):
            self._count(self.calls.add([{"function": legacy}]))

    def _shown(
        self, parts: list[Part], *, from_tags: bool = True
    ) -> Iterator[TextDelta | ReasoningDelta]:
        for part in parts:
            is_repeated = part[0] == "reasoning" and from_tags and self._has_reasoning_field
            delta = None if is_repeated else self._show(part)
            if delta is not None:
                yield delta

    def _show(self, part: Part) -> TextDelta | ReasoningDelta | None:
        kind, text = part
        self._count(len(text))
        if kind == "text":
            shown = self._text.take(text)
            return TextDelta(text=shown) if shown else None
        shown = self._reasoning.take(text)
        return ReasoningDelta(text=shown) if shown else None

    def _count(self, characters: int) -> None:
        self._characters += characters
        if self._characters > MAX_ANSWER_CHARACTERS:
            raise AnswerTooLongError


def _content_parts(content: object) -> Iterator[Part]:
    """Text and thinking of a content field: a string, or Mistral's list of parts."""
    if isinstance(content, str):
        yield "text", content
    for entry in as_array(content):
        part = as_object(entry)
        yield "text", as_text(part.get("text"))
        thinking = part.get("thinking")
        yield (
            "reasoning",
            as_text(thinking)
            + "".join(as_text(as_object(inner).get("text")) for inner in as_array(thinking)),
        )


def _detail_text(detail: JsonObject) -> str:
    return as_text(detail.get("text")) or as_text(detail.get("summary"))


def _detail_signatures(detail: JsonObject) -> Iterator[str]:
    for key in ("signature", "data"):
        signature = as_text(detail.get(key))
        if signature:
            yield signature
