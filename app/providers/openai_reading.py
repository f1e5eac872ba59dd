"""The bytes of an answered OpenAI-compatible call in, deltas and an outcome out; no I/O.

The content type is not asked, because it lies: event streams come as `application/json`, bare JSON
as `text/event-stream`, and NDJSON as anything. What the lines look like decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from app.ports import ReasoningDelta, TextDelta
from app.providers.failures import Evidence, classify
from app.providers.openai_answer import MAX_ANSWER_CHARACTERS, AnswerBuilder, AnswerTooLongError
from app.providers.sse_lines import Event, EventStream
from app.providers.wire_json import (
    JsonObject,
    as_array,
    as_object,
    as_text,
    is_array,
    is_object,
    parsed,
)
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.transcript import ModelAnswer, StopReason

_ERROR_TEXT_KEYS = ("message", "detail", "error_msg", "error_message", "msg", "errors")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an answered call ended."""

    answer: ModelAnswer
    failure: ModelFailure | RequestRefused | None
    """Only what the body itself says; a bare cut is an `INTERRUPTED` answer without a failure."""


@dataclass(slots=True)
class OpenAiReading:
    """Reads one answer, however its bytes are cut."""

    failure: ModelFailure | RequestRefused | None = None
    _events: EventStream = field(default_factory=EventStream)
    _builder: AnswerBuilder = field(default_factory=AnswerBuilder)
    _stray: list[str] = field(default_factory=list[str])
    _stray_characters: int = 0
    _garbage: str = ""
    """The last data that was no JSON."""

    @property
    def is_done(self) -> bool:
        """The provider said that nothing follows, or that it failed."""
        return self._builder.is_done or self.failure is not None

    @property
    def is_whole(self) -> bool:
        """The answer's end has come, though perhaps not yet the end of the stream."""
        return self._builder.is_whole

    def feed(self, piece: bytes) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield what these bytes add.

        Raises:
            LineTooLongError: A line is longer than 8 MiB.
            AnswerTooLongError: The answer is longer than 32 Mi characters.
        """
        for event in self._events.feed(piece):
            yield from self._read(event)

    def close(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield what was still open when the bytes ended."""
        for event in self._events.close():
            yield from self._read(event)
        yield from self._read_stray()
        yield from self._builder.flush()

    def outcome(self) -> Outcome:
        """What the call came to; for after `close`."""
        answer = self._builder.finished()
        said = self._garbage or "\n".join(self._stray)
        if self.failure is None and not self._builder.has_choice and said:
            self.failure = classify(Evidence(where="response", status=200, body=said))
        if self.failure is not None:
            answer = replace(answer, stop_reason=StopReason.INTERRUPTED)
        return Outcome(answer, self.failure)

    def _read(self, event: Event) -> Iterator[TextDelta | ReasoningDelta]:
        if self.failure is not None:
            return
        if event.is_stray:
            yield from self._read_stray_line(event.lines[0])
            return
        joined = "\n".join(event.lines)
        if len(event.lines) == 1 or parsed(joined) is not None:
            yield from self._read_data(joined)
            return
        for line in event.lines:
            yield from self._read_data(line)

    def _read_data(self, data: str) -> Iterator[TextDelta | ReasoningDelta]:
        data = data.strip()
        if data == "[DONE]":
            yield from self._read_stray()
            self._builder.is_done = True
        elif data and not data.startswith(":"):
            yield from self._take(parsed(data), data)

    def _read_stray_line(self, line: str) -> Iterator[TextDelta | ReasoningDelta]:
        """NDJSON has a whole object on every line; a pretty-printed body has not."""
        value = None if self._stray else parsed(line)
        if is_object(value):
            yield from self._take(value, line)
            return
        self._stray.append(line)
        self._stray_characters += len(line)
        if self._stray_characters > MAX_ANSWER_CHARACTERS:
            raise AnswerTooLongError

    def _read_stray(self) -> Iterator[TextDelta | ReasoningDelta]:
        body = parsed("\n".join(self._stray)) if self._stray else None
        if body is not None:
            self._stray = []
            yield from self._take(body, "")

    def _take(self, value: object, data: str) -> Iterator[TextDelta | ReasoningDelta]:
        entries = value if is_array(value) else [value]
        for entry in entries:
            if not is_object(entry):
                self._garbage = data
            elif self._garbage.startswith("{"):
                self.failure = classify(Evidence(where="stream", status=200, body=self._garbage))
            elif _is_error(entry):
                self.failure = classify(Evidence(where="stream", status=200, body=entry))
            else:
                yield from self._take_chunk(entry)

    def _take_chunk(self, chunk: JsonObject) -> Iterator[TextDelta | ReasoningDelta]:
        chunk = _from_ollama(chunk) if is_object(chunk.get("message")) else chunk
        yield from self._builder.add(chunk)
        choices = [as_object(choice) for choice in as_array(chunk.get("choices"))]
        if any("message" in choice and "delta" not in choice for choice in choices):
            self._builder.is_done = True  # a whole message is an end, with a stop value or without


def _is_error(chunk: JsonObject) -> bool:
    """Whether a chunk of a 200 answer is a failure, as providers put it there."""
    if chunk.get("error") or chunk.get("object") == "error" or chunk.get("type") == "error":
        return True
    if as_object(chunk.get("base_resp")).get("status_code", 0) != 0:  # MiniMax
        return True
    choices = [as_object(choice) for choice in as_array(chunk.get("choices"))]
    if choices or "choices" in chunk:
        return any(is_object(choice.get("error")) for choice in choices)  # OpenRouter
    return any(as_text(chunk.get(key)) for key in _ERROR_TEXT_KEYS)


def _from_ollama(chunk: JsonObject) -> JsonObject:
    """A line of Ollama's own protocol as a chunk of OpenAI's."""
    message = as_object(chunk.get("message"))
    delta = {**message, "reasoning": message.get("thinking")}
    stop = (chunk.get("done_reason") or "stop") if chunk.get("done") else None
    usage = {
        "prompt_tokens": chunk.get("prompt_eval_count"),
        "completion_tokens": chunk.get("eval_count"),
    }
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}], "usage": usage}
