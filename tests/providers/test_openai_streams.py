"""Recorded shapes of answers: whole, cut at random bytes, and cut at every byte."""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NotRequired, TypedDict

import pytest

from app.ports import ReasoningDelta, TextDelta
from app.providers.openai_reading import OpenAiReading, Outcome
from app.providers.wire_json import is_array, is_object
from app.turn.failures import ModelFailure
from app.turn.transcript import ToolCall

_FILE = Path(__file__).parent.parent / "data" / "wire-streams-openai-llamacpp.jsonl"
_SEED = 20260929
_NOT_KEPT = {"reasoningTokens", "argumentsText"}
_CUT_AT_EVERY_BYTE = (
    "openai-plain-01",
    "openai-parallel-01",
    "openai-args-unicode-37",
    "sse-u2028-20",
    "sse-unicode-18",
    "sse-data-in-text-23",
    "llamacpp-args-object-24",
    "llamacpp-timings-each-02",
)


class Case(TypedDict):
    """A line of the file; `alt` holds other right values of a field."""

    id: str
    raw: str
    expected: dict[str, object]
    alt: NotRequired[dict[str, list[object]]]


def _cases() -> Iterator[Case]:
    for line in _FILE.read_text(encoding="utf-8").split("\n"):
        if line:
            case: Case = json.loads(line)
            yield case


_CASES = {case["id"]: case for case in _cases()}


def _read(stream: bytes, cuts: Sequence[int] = ()) -> Outcome:
    """Feed the stream in pieces; what a reader saw must be what the answer says."""
    reading = OpenAiReading()
    borders = [0, *sorted(cuts), len(stream)]
    deltas = [
        delta for start, end in pairwise(borders) for delta in reading.feed(stream[start:end])
    ]
    deltas += reading.close()
    outcome = reading.outcome()
    assert _joined(deltas, TextDelta) == outcome.answer.text
    assert _joined(deltas, ReasoningDelta) == outcome.answer.reasoning
    return outcome


def _joined(
    deltas: Sequence[TextDelta | ReasoningDelta], kind: type[TextDelta | ReasoningDelta]
) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, kind))


def _as_expected(outcome: Outcome) -> dict[str, object]:
    """The outcome in the words of the corpus."""
    answer = outcome.answer
    counts = {
        "inputTokens": answer.usage.input_tokens,
        "outputTokens": answer.usage.output_tokens,
        "cachedInputTokens": answer.usage.cached_input_tokens,
    }
    stated = {name: count for name, count in counts.items() if count is not None}
    return {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "toolCalls": [_call(call) for call in answer.tool_calls],
        "usage": stated or None,
        "stopReason": answer.stop_reason.value,
        "failure": _failure(outcome),
    }


def _call(call: ToolCall) -> dict[str, object]:
    arguments = None if call.problem else json.loads(call.arguments)
    return {"id": call.call_id or None, "name": call.tool_name, "arguments": arguments}


def _failure(outcome: Outcome) -> object:
    if outcome.failure is None:
        return None
    assert isinstance(outcome.failure, ModelFailure)
    return {"type": outcome.failure.type.value, "retryable": outcome.failure.retryable}


def _faults(case: Case, outcome: Outcome) -> dict[str, object]:
    """The fields that are not among the right values."""
    found = _as_expected(outcome)
    return {
        field: found[field]
        for field, value in case["expected"].items()
        if field in found
        and found[field]
        not in [_known(right) for right in (value, *case.get("alt", {}).get(field, []))]
    }


def _known(value: object) -> object:
    """Without what the service does not keep: reasoning tokens, the text of broken arguments."""
    if is_object(value):
        return {key: _known(inner) for key, inner in value.items() if key not in _NOT_KEPT}
    return [_known(inner) for inner in value] if is_array(value) else value


@pytest.mark.parametrize("name", _CASES)
def test_an_answer_is_read_rightly_as_a_whole(name: str) -> None:
    case = _CASES[name]

    assert _faults(case, _read(case["raw"].encode())) == {}


@pytest.mark.parametrize("name", _CASES)
def test_an_answer_cut_at_random_bytes_is_read_the_same(name: str) -> None:
    stream = _CASES[name]["raw"].encode()
    cuts = random.Random(f"{_SEED}{name}").sample(range(len(stream)), 9)  # noqa: S311 - no secret

    assert _read(stream, cuts) == _read(stream)


@pytest.mark.parametrize("name", _CUT_AT_EVERY_BYTE)
def test_an_answer_cut_at_every_byte_is_read_the_same(name: str) -> None:
    stream = _CASES[name]["raw"].encode()

    assert _read(stream, range(len(stream))) == _read(stream)


@pytest.mark.parametrize("name", ["openai-plain-01", "openai-parallel-01"])
def test_an_answer_broken_off_at_any_byte_is_never_taken_for_a_finished_one(name: str) -> None:
    stream = _CASES[name]["raw"].encode()
    finish = stream.index(b'"finish_reason":"')

    endings = {_read(stream[:end]).answer.stop_reason.value for end in range(1, finish, 7)}

    assert endings == {"INTERRUPTED"}
