"""The bytes of an answered call in, deltas and an outcome out; no I/O, the same for every wire.

What a chunk means is the affair of a builder, one for each wire (`openai_answer`,
`anthropic_answer`). Live calls, recorded ones and `turnkeeper wires parse` are read by this code.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Literal, Protocol, TypeAlias

from app.ports import ReasoningDelta, TextDelta
from app.providers.failures import Evidence, classify
from app.providers.json_frames import AnswerTooLongError, Done, Frame, Garbage, JsonFrames
from app.providers.sse_lines import LineTooLongError
from app.providers.tool_call_parts import TooManyCallsError
from app.providers.wire_json import JsonObject, as_array, as_object, as_text, is_object
from app.turn.failures import FailureType, ModelFailure, RequestRefused
from app.turn.transcript import ModelAnswer

Delta: TypeAlias = TextDelta | ReasoningDelta
Failure: TypeAlias = ModelFailure | RequestRefused

_text_of: Callable[[Delta], str] = attrgetter("text")

_TOO_LONG = (LineTooLongError, AnswerTooLongError, TooManyCallsError)
_HEARTBEATS = ("ping", "heartbeat", "keepalive", "keep-alive")
_ALL_IS_WELL = (0, "0", 200, "200")
_ERROR_KEYS = frozenset({"error", "x_groq", "base_resp"})
_TEXT_KEYS = frozenset({"message", "detail", "error_msg", "error_message", "msg", "errors"})


def joined(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """The same with neighbours of one kind as one: what comes together is shown together."""
    for kind, run in groupby(deltas, key=type):
        yield kind(text="".join(map(_text_of, run)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What has been read of an answer."""

    answer: ModelAnswer
    """`INTERRUPTED` where nothing says that it is whole."""
    argument_texts: tuple[str, ...] = ()
    """The arguments of each tool call as the model wrote them, JSON or not."""
    signatures: tuple[str, ...] = ()
    """Everything opaque that came, in order."""
    reasoning_tokens: int | None = None
    """How many of the output tokens were reasoning, where the provider says so."""
    to_return: JsonObject = field(default_factory=dict[str, object])
    """What must go back with the answer, in the shape of its wire; empty where nothing must."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an answered call ended."""

    reading: Reading
    failure: Failure | None
    """Only what the body itself says; a bare cut is an `INTERRUPTED` answer without a failure."""

    @property
    def answer(self) -> ModelAnswer:
        return self.reading.answer


class AnswerBuilder(Protocol):
    """Collects one answer from the chunks of one wire."""

    is_done: bool
    """The provider said that nothing follows."""

    @property
    def is_ending(self) -> bool:
        """Whether what may follow is not worth a long wait."""
        ...

    @property
    def has_content(self) -> bool:
        """Whether anything that came was a part of an answer."""
        ...

    @property
    def has_calls(self) -> bool:
        """Whether a tool call has begun, its arguments perhaps not yet whole."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the provider has said how the answer ends."""
        ...

    def recognises(self, chunk: JsonObject) -> bool:
        """Whether the chunk has the shape of this wire, so that a text in it is no complaint."""
        ...

    def add(self, chunk: JsonObject) -> Iterator[Delta]:
        """Take one chunk, yield what it adds for a reader; after the end only usage is taken.

        Raises:
            AnswerTooLongError: The answer has grown over 32 Mi characters.
            TooManyCallsError: It asks for more than 1,000 tool calls.
        """
        ...

    def flush(self) -> Iterator[Delta]:
        """Yield what was held back until more was known; for the end of the stream."""
        ...

    def finished(self, *, is_broken: bool) -> Reading:
        """The answer as far as it came; a broken one is `INTERRUPTED`."""
        ...


@dataclass(slots=True)
class AnswerReading:
    """Reads one answer, however its bytes are cut."""

    _builder: AnswerBuilder
    failure: Failure | None = None
    provider: str | None = None
    """Who answers, by name and address: whose numbers an error's numbers are."""
    _frames: JsonFrames = field(default_factory=JsonFrames)
    _garbage: str = ""
    """The last data that was no JSON."""

    @property
    def is_ending(self) -> bool:
        """Nothing that is worth a long wait follows."""
        return self._builder.is_ending or self.failure is not None

    @property
    def has_calls(self) -> bool:
        """A tool call has begun."""
        return self._builder.has_calls

    @property
    def is_whole(self) -> bool:
        """The answer's end has come, though perhaps not yet the end of the stream."""
        return self._builder.is_whole

    @property
    def _is_over(self) -> bool:
        """Behind an answer that has ended even an error changes nothing."""
        return self._builder.is_done and self._builder.has_content

    def feed(self, piece: bytes) -> Iterator[Delta]:
        """Yield what these bytes add; an answer beyond all bounds is a failure."""
        return self._bounded(self._frames.feed(piece))

    def close(self) -> Iterator[Delta]:
        """Yield what was still open when the bytes ended."""
        yield from self._bounded(self._frames.close())
        yield from self._builder.flush()

    def outcome(self) -> Outcome:
        """What the call came to; for after `close`."""
        if self.failure is None and not self._builder.has_content and self._garbage:
            self.failure = self._classified("response", self._garbage)
        return Outcome(self._builder.finished(is_broken=self.failure is not None), self.failure)

    def _bounded(self, frames: Iterator[Frame]) -> Iterator[Delta]:
        try:
            for frame in frames:
                yield from self._take(frame)
        except _TOO_LONG as error:
            self.failure = _too_long(error)

    def _take(self, frame: Frame) -> Iterable[Delta]:
        if self.failure is not None:
            return ()
        if isinstance(frame, Garbage):
            text = frame.text
            self._garbage = text if text.startswith("{") else self._garbage or text
        elif self._garbage and self._garbage[0] == "{":  # a chunk was damaged, and it goes on
            self.failure = self._classified("stream", self._garbage)
        elif isinstance(frame, Done):
            self._builder.is_done = True
        elif self._is_over or not self._is_error(frame):
            return self._builder.add(frame)
        else:
            self.failure = self._classified("stream", frame)
        return ()

    def _is_error(self, chunk: JsonObject) -> bool:
        """Whether an object in a 200 answer is a failure, as providers put it there."""
        return has_error(chunk) or (complains(chunk) and not self._builder.recognises(chunk))

    def _classified(self, where: Literal["response", "stream"], body: object) -> Failure:
        return classify(Evidence(where=where, status=200, body=body, provider=self.provider))


def _too_long(error: Exception) -> ModelFailure:
    return ModelFailure(
        type=FailureType.UNAVAILABLE,
        message=type(error).__doc__ or "",
        retryable=False,
        http_status=200,
        exception_type=type(error).__name__,
    )


def has_error(chunk: JsonObject) -> bool:
    """Whether a chunk is an error, or holds one."""
    if chunk.get("object") == "error" or chunk.get("type") == "error":
        return True
    if not _ERROR_KEYS.isdisjoint(chunk) and _states_error(chunk):
        return True
    for choice in as_array(chunk.get("choices")):
        if is_object(choice) and is_object(choice.get("error")):  # OpenRouter
            return True
    return False


def _states_error(chunk: JsonObject) -> bool:
    if _says_something(chunk.get("error")):
        return True
    if _says_something(as_object(chunk.get("x_groq")).get("error")):
        return True  # Groq's API reference: why a stream was stopped early
    return as_object(chunk.get("base_resp")).get("status_code", 0) != 0  # MiniMax


def complains(chunk: JsonObject) -> bool:
    """Whether an object has a text for us that is not that all is well; a chunk may have one."""
    if _TEXT_KEYS.isdisjoint(chunk) or _is_fine(chunk):
        return False
    return any(as_text(chunk.get(key)) for key in _TEXT_KEYS)


def _says_something(error: object) -> bool:
    """Some gateways put an empty error, or one of nulls, into every chunk."""
    return any(as_object(error).values()) if is_object(error) else bool(error)


def _is_fine(chunk: JsonObject) -> bool:
    """An object whose text is no complaint: a heartbeat, or one that says that all is well."""
    return chunk.get("type") in _HEARTBEATS or chunk.get("code") in _ALL_IS_WELL
