"""Answers as they were seen on both wires: whole, cut at random bytes, and cut at every byte.

`wire-streams.jsonl` holds cases of the dialects that are known, `wire-streams-more.jsonl` cases
written from providers' documentation before the readers were tried on them.
"""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NotRequired, TypedDict

import orjson
import pytest

from app.entrypoints.wires import described
from app.ports import ReasoningDelta, TextDelta
from app.providers.answer_reading import AnswerReading, Delta, Outcome
from app.providers.recorded_answer import BUILDERS, RecordedAnswer, read_again
from app.providers.stop_values import stop_reason

_DATA = Path(__file__).parent.parent / "data"
_SEED = 20260929
_CUT_AT_EVERY_BYTE = (
    *("openai-plain-01", "openai-parallel-01", "openai-args-unicode-37", "sse-u2028-20"),
    *("sse-unicode-18", "think-tags-split-19", "json-pretty-04", "ndjson-openai-05"),
    *("ant-order-05", "ant-u2028-20", "ant-json-21", "ant-text-start-repeated"),
    *("kimi-think-marks", "bom-crlf-charset"),
)


class Case(TypedDict):
    """A line of a file; `alt` holds other right values of a field."""

    id: str
    wire: str
    status: int
    raw: str
    expected: dict[str, object]
    alt: NotRequired[dict[str, list[object]]]


def _cases() -> Iterator[Case]:
    for name in ("wire-streams.jsonl", "wire-streams-more.jsonl"):
        for line in (_DATA / name).read_bytes().splitlines():
            case: Case = json.loads(line)
            yield case


_CASES = {case["id"]: case for case in _cases()}
_ANSWERED = [name for name, case in _CASES.items() if case["status"] == 200 and case["raw"]]


def _read(case: Case, cuts: Sequence[int] = ()) -> Outcome:
    """Feed the body in pieces; what a reader saw must be what the answer says."""
    stream = case["raw"].encode()
    reading = AnswerReading(BUILDERS[case["wire"]]())
    borders = [0, *sorted(cuts), len(stream)]
    deltas = [
        delta for start, end in pairwise(borders) for delta in reading.feed(stream[start:end])
    ]
    deltas += reading.close()
    outcome = reading.outcome()
    assert _joined(deltas, TextDelta) == outcome.answer.text
    assert _joined(deltas, ReasoningDelta) == outcome.answer.reasoning
    return outcome


def _joined(deltas: Sequence[Delta], kind: type[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, kind))


def _faults(case: Case) -> dict[str, object]:
    """The fields that are not among the right values."""
    recorded = RecordedAnswer(wire=case["wire"], body=case["raw"].encode(), status=case["status"])
    found: dict[str, object] = orjson.loads(orjson.dumps(described(read_again(recorded))))
    expected: dict[str, object] = {"signatures": list[str](), **case["expected"]}
    alternatives = case.get("alt", {})
    return {
        field: found[field]
        for field, value in expected.items()
        if found[field] not in (value, *alternatives.get(field, []))
    }


@pytest.mark.parametrize("name", _CASES)
def test_an_answer_is_read_rightly_as_a_whole(name: str) -> None:
    assert _faults(_CASES[name]) == {}


@pytest.mark.parametrize("name", _ANSWERED)
def test_an_answer_cut_at_random_bytes_is_read_the_same(name: str) -> None:
    case = _CASES[name]
    size = len(case["raw"].encode())
    chosen = random.Random(f"{_SEED}{name}")  # noqa: S311 - no secret
    cuts = chosen.sample(range(size), min(9, size))

    assert _read(case, cuts) == _read(case)


@pytest.mark.parametrize("name", _CUT_AT_EVERY_BYTE)
def test_an_answer_cut_at_every_byte_is_read_the_same(name: str) -> None:
    case = _CASES[name]

    assert _read(case, range(len(case["raw"].encode()))) == _read(case)


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("openai-plain-01", '"finish_reason":"'),
        ("openai-parallel-01", '"finish_reason":"'),
        ("ant-order-05", '"stop_reason":"'),
    ],
)
def test_an_answer_broken_off_at_any_byte_is_never_taken_for_a_finished_one(
    name: str, end: str
) -> None:
    case = _CASES[name]
    stream = case["raw"].encode()
    begun: list[Case] = [
        {**case, "raw": stream[:at].decode("utf-8", "ignore")}
        for at in range(1, stream.index(end.encode()), 7)
    ]

    assert {_read(part).answer.stop_reason.value for part in begun} == {"INTERRUPTED"}


def _stop_values() -> list[tuple[str, str]]:
    lines = (_DATA / "stop-values.jsonl").read_bytes().splitlines()
    listed = [(str(value["raw"]), str(value["expected"])) for value in map(json.loads, lines)]
    written_otherwise = [
        *((raw.upper(), expected) for raw, expected in listed),
        *((raw.replace("_", "-"), expected) for raw, expected in listed),
        *((raw.title().replace("_", ""), expected) for raw, expected in listed),
        *((f"FinishReason.{raw.upper()}", expected) for raw, expected in listed),
        *((f"FINISH_REASON_{raw.upper()}", expected) for raw, expected in listed),
    ]
    of_the_same_kinds = [
        *(("MALFORMED_FUNCTION_CALL", "INTERRUPTED"), ("UNEXPECTED_TOOL_CALL", "INTERRUPTED")),
        *(("malformed_tool_use", "INTERRUPTED"), ("USER_CANCEL", "INTERRUPTED")),
        *(("ERROR_TOXIC", "REFUSAL"), ("guardrail_intervened", "REFUSAL")),
        *(("content_policy_violation", "REFUSAL"), ("IMAGE_RECITATION", "REFUSAL")),
        *(("max_new_tokens", "MAX_OUTPUT"), ("output_token_limit", "MAX_OUTPUT")),
        *(("model_context_window_exceeded", "CONTEXT_FULL"), ("COMPLETE", "END_TURN")),
        *(("compaction", "OTHER"), ("FINISH_REASON_UNSPECIFIED", "OTHER"), ("stopped?", "OTHER")),
        *(("unusable_tool", "OTHER"), ("", "OTHER")),
    ]
    return [*listed, *written_otherwise, *of_the_same_kinds]


@pytest.mark.parametrize(("raw", "expected"), _stop_values())
def test_a_stop_value_means_the_same_however_it_is_written(raw: str, expected: str) -> None:
    assert stop_reason(raw, has_calls=False).value == expected
