"""`turnkeeper wires parse`: recorded answers, read by the code that reads live ones.

A line of input is an object with `wire` (`openai_chat` or `anthropic_messages`), `raw` (the body
as text), and if it likes `status` (200 unless said) and `content_type`; whatever else it has is
ignored. A line of output says what was read. A line that cannot be used gives `{"error": …}` in its
place, so that output line n always belongs to input line n, and a complaint on the standard error.
"""

import sys
from pathlib import Path
from typing import BinaryIO

import orjson

from app.providers.answer_reading import Failure, Outcome, Reading
from app.providers.recorded_answer import BUILDERS, RecordedAnswer, read_again
from app.providers.wire_json import as_count, as_text, is_object, parsed
from app.turn.failures import ModelFailure
from app.turn.transcript import ToolCall

_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\u0085\u2028\u2029"}
"""Models emit them, and many readers of lines would cut there."""


class _UnusableLineError(Exception):
    """A line of input is not of the documented shape."""


def parse(source: BinaryIO) -> int:
    """Read answers from `source`, a line each, and print a line for each; the exit status.

    It is 1 when a line could not be used, else 0.
    """
    status = 0
    for number, line in enumerate(source, start=1):
        try:
            said = described(read_again(_case(line)))
        except _UnusableLineError as error:
            status = 1
            said = {"error": f"line {number}: {error}"}
            sys.stderr.write(f"turnkeeper: line {number}: {error}\n")
        sys.stdout.write(orjson.dumps(said).decode().translate(_LINE_ENDS) + "\n")
    sys.stdout.flush()
    return status


def parse_file(name: str) -> int:
    """`parse` a file, or the standard input under the name `-`."""
    if name == "-":
        return parse(sys.stdin.buffer)
    try:
        with Path(name).open("rb") as source:
            return parse(source)
    except OSError as error:
        sys.stderr.write(f"turnkeeper: {name}: {error.strerror}\n")
        return 1


def _case(line: bytes) -> RecordedAnswer:
    case = parsed(line)
    if not is_object(case):
        raise _UnusableLineError("a JSON object is needed")
    wire, raw = as_text(case.get("wire")), case.get("raw")
    if wire not in BUILDERS:
        raise _UnusableLineError(f"'wire' must be one of {', '.join(BUILDERS)}")
    if not isinstance(raw, str):
        raise _UnusableLineError("'raw' must be the body as text")
    return RecordedAnswer(
        wire=wire,
        body=raw.encode("utf-8", "replace"),
        status=as_count(case.get("status")),
        content_type=as_text(case.get("content_type")),
    )


def described(outcome: Outcome) -> dict[str, object]:
    """A line of output."""
    answer = outcome.answer
    texts = outcome.reading.argument_texts
    return {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "toolCalls": [
            _call(call, text) for call, text in zip(answer.tool_calls, texts, strict=True)
        ],
        "usage": _usage(outcome.reading),
        "stopReason": answer.stop_reason.value,
        "signatures": list(outcome.reading.signatures),
        "failure": None if outcome.failure is None else _failure(outcome.failure),
    }


def _call(call: ToolCall, text: str) -> dict[str, object]:
    said = {"id": call.call_id or None, "name": call.tool_name}
    if call.problem is not None:
        return {**said, "arguments": None, "argumentsText": text}
    return {**said, "arguments": orjson.Fragment(call.arguments)}


def _usage(reading: Reading) -> dict[str, int] | None:
    """Only what the provider stated."""
    counts = {
        "inputTokens": reading.answer.usage.input_tokens,
        "cachedInputTokens": reading.answer.usage.cached_input_tokens,
        "outputTokens": reading.answer.usage.output_tokens,
        "reasoningTokens": reading.reasoning_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None} or None


def _failure(failure: Failure) -> dict[str, object]:
    if isinstance(failure, ModelFailure):
        return {"type": failure.type.value, "retryable": failure.retryable}
    return {"type": "NOT_A_MODEL_FAILURE", "retryable": False}
