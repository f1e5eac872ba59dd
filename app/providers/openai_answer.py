"""Chunks of an OpenAI-compatible answer in, deltas and the whole answer out; no I/O.

The same code reads a streamed answer, a JSON body under 200, a line of Ollama's own protocol, and
the closing frame in which some providers repeat everything they have streamed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.ports import ReasoningDelta, TextDelta
from app.providers.answer_reading import Delta, Reading
from app.providers.json_frames import MAX_ANSWER_CHARACTERS, AnswerTooLongError
from app.providers.openai_reasoning import ReasoningParts, content_parts, is_thought, reasoning_in
from app.providers.openai_usage import UsageFigures
from app.providers.stop_values import stop_reason
from app.providers.text_pieces import TextPieces
from app.providers.think_tags import Part, ThinkTags
from app.providers.tool_call_parts import ToolCallParts
from app.providers.wire_json import JsonObject, as_array, as_object, as_text, is_array, is_object
from app.turn.transcript import ModelAnswer, StopReason


@dataclass(slots=True)
class OpenAiAnswer:
    """An `AnswerBuilder` for chat completions."""

    is_done: bool = False
    raw_stop: str | None = None
    _has_choice: bool = False
    _calls: ToolCallParts = field(default_factory=ToolCallParts)
    _text: TextPieces = field(default_factory=TextPieces)
    _reasoning: TextPieces = field(default_factory=TextPieces)
    _opaque: ReasoningParts = field(default_factory=ReasoningParts)
    _tags: ThinkTags = field(default_factory=ThinkTags)
    _usage: UsageFigures = field(default_factory=UsageFigures)
    _was_refused: bool = False
    _has_reasoning_field: bool = False
    _characters: int = 0

    @property
    def is_ending(self) -> bool:
        """A stop value alone is no end: some send one with each call."""
        return self.is_done

    @property
    def has_content(self) -> bool:
        """At least one chunk carried a part of an answer."""
        return self._has_choice

    @property
    def has_calls(self) -> bool:
        """A fragment of a tool call has come."""
        return bool(self._calls)

    @property
    def is_whole(self) -> bool:
        """Whether the provider has said how the answer ends."""
        return self.raw_stop is not None or (self.is_done and self._has_choice)

    def recognises(self, chunk: JsonObject) -> bool:
        """A list of choices, empty ones included."""
        return is_array(chunk.get("choices"))

    def add(self, chunk: JsonObject) -> Iterator[Delta]:
        """Take one chunk, yield what it adds for a reader."""
        text = None if self.is_done else _only_text(chunk)
        if text is not None:
            self._has_choice = True
            return self._shown(self._tags.feed(text))
        return self._read(chunk)

    def _read(self, chunk: JsonObject) -> Iterator[Delta]:
        chunk = _from_ollama(chunk) if is_object(chunk.get("message")) else chunk
        self._usage.take_from(chunk)
        self._usage.take_from(as_object(chunk.get("x_groq")))
        had_choice, is_whole_message = self._has_choice, False
        for choice in filter(is_object, as_array(chunk.get("choices"))):
            is_whole_message |= "message" in choice and "delta" not in choice
            if not choice.get("index"):
                self._usage.take_from(choice)
                if not self.is_done:
                    yield from self._add_choice(choice, had_choice=had_choice)
        # A whole message is an end, with a stop value or without.
        self.is_done = self.is_done or is_whole_message

    def flush(self) -> Iterator[Delta]:
        """Yield what was held back in case it was half of a tag."""
        return self._shown(self._tags.close())

    def finished(self, *, is_broken: bool) -> Reading:
        """The answer as far as it came."""
        reason = StopReason.INTERRUPTED if is_broken else self._stop_reason()
        was_cut = reason in {StopReason.MAX_OUTPUT, StopReason.INTERRUPTED}
        answer = ModelAnswer(
            text=self._text.whole(),
            reasoning=self._reasoning.whole(),
            tool_calls=self._calls.finished(was_cut=was_cut),
            stop_reason=reason,
            raw_stop=self.raw_stop,
            usage=self._usage.usage(),
        )
        return Reading(
            answer=answer,
            argument_texts=self._calls.argument_texts(),
            signatures=(*self._opaque.signatures, *self._calls.signatures()),
            reasoning_tokens=self._usage.reasoning,
            to_return=self._to_return(),
        )

    def _to_return(self) -> JsonObject:
        """What to add to the message and to each of its calls when they go back."""
        calls = self._calls.to_return()
        fields = self._opaque.to_return(has_calls=bool(calls))
        return {"message": fields, "calls": calls} if fields or any(calls) else {}

    def _stop_reason(self) -> StopReason:
        if not self.is_whole:
            return StopReason.INTERRUPTED
        reason = stop_reason(self.raw_stop or "stop", has_calls=bool(self._calls))
        refuses = self._was_refused and reason is StopReason.END_TURN
        return StopReason.REFUSAL if refuses else reason

    def _add_choice(self, choice: JsonObject, *, had_choice: bool) -> Iterator[Delta]:
        delta = choice.get("delta")
        self._has_choice = True
        self.raw_stop = as_text(choice.get("finish_reason")) or self.raw_stop
        if is_object(delta) or not had_choice or "message" not in choice:
            # a whole message behind deltas only repeats them
            part = delta if is_object(delta) else choice.get("message", _completion(choice))
            part = as_object(part)
            yield from self._add_reasoning(part)
            yield from self._add_content(part)
            self._add_calls(part)

    def _add_content(self, part: JsonObject) -> Iterator[Delta]:
        for kind, text in content_parts(part):
            parts: list[Part] = self._tags.feed(text) if kind == "text" else [(kind, text)]
            yield from self._shown(_as_thoughts(parts) if is_thought(part) else parts)
        refusal = as_text(part.get("refusal"))
        if refusal:
            self._was_refused = True
            yield from self._shown([("text", refusal)])

    def _add_reasoning(self, part: JsonObject) -> Iterator[Delta]:
        self._opaque.take(part)
        text = reasoning_in(part)
        if text:
            self._has_reasoning_field = True
            yield from self._shown([("reasoning", text)], from_tags=False)

    def _add_calls(self, part: JsonObject) -> None:
        if "tool_calls" in part:
            self._count(self._calls.add(part["tool_calls"]))
        legacy = part.get("function_call")
        if is_object(legacy):
            self._count(self._calls.add([{"function": legacy}]))

    def _shown(self, parts: Sequence[Part], *, from_tags: bool = True) -> Iterator[Delta]:
        for part in parts:
            is_repeated = part[0] == "reasoning" and from_tags and self._has_reasoning_field
            delta = None if is_repeated else self._show(part)
            if delta is not None:
                yield delta

    def _show(self, part: Part) -> Delta | None:
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


_OF_PLAIN_CHUNKS = frozenset(
    {"id", "object", "created", "model", "service_tier", "system_fingerprint", "choices"}
)

_OF_PLAIN_CHOICES = frozenset({"index", "delta", "finish_reason", "logprobs"})


def _only_text(chunk: JsonObject) -> str | None:
    """The text of a chunk that brings nothing else, as nearly every chunk does.

    It is read like any other, but at half the cost.
    """
    choices = chunk.get("choices")
    if not (_OF_PLAIN_CHUNKS.issuperset(chunk) and is_array(choices) and len(choices) == 1):
        return None
    choice = choices[0]
    if not (is_object(choice) and _OF_PLAIN_CHOICES.issuperset(choice)):
        return None
    delta = choice.get("delta")
    if choice.get("index") or choice.get("finish_reason") or not is_object(delta):
        return None
    text = delta.get("content")
    return text if isinstance(text, str) and len(delta) == 1 else None


def _completion(choice: JsonObject) -> JsonObject:
    """A choice of the older completions as the part of a chat."""
    return {"content": choice.get("text")}


def _as_thoughts(parts: Sequence[Part]) -> Sequence[Part]:
    return [("reasoning", text) for _, text in parts]


def _from_ollama(chunk: JsonObject) -> JsonObject:
    """A line of Ollama's own protocol as a chunk of OpenAI's."""
    stop = (chunk.get("done_reason") or "stop") if chunk.get("done") else None
    usage = {
        "prompt_tokens": chunk.get("prompt_eval_count"),
        "completion_tokens": chunk.get("eval_count"),
    }
    choice = {"index": 0, "delta": chunk["message"], "finish_reason": stop}
    return {"choices": [choice], "usage": usage}
