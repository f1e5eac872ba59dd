"""Failures as providers, gateways and networks send them, each with what it is.

`model-failures.jsonl` are the cases the rules were made with. Those of `model-failures-more.jsonl`
were written in twelve batches, each before the rules had seen it: `evidence` says whether its words
were seen on the page that `source` names, or are recalled or made up for a kind of wording. A case
that is `ambiguous` may also be what its `alt` lists, as a type or as `TYPE:PHASE`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.providers.failures import Evidence, explain
from app.turn.failures import FailureType, ModelFailure

_DATA = Path(__file__).parent.parent / "data"
FILES = ("model-failures.jsonl", "model-failures-more.jsonl")

NOT_A_MODEL_FAILURE = "NOT_A_MODEL_FAILURE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a failure is, or what it is taken for."""

    type: str
    phase: str | None
    retry_after_ms: int | None
    retryable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    evidence: Evidence
    label: Label
    is_ambiguous: bool
    others: frozenset[str]
    """The other types, or types with a phase, that count as right."""

    def has_right_type(self, answer: Label) -> bool:
        types = {other.partition(":")[0] for other in self.others}
        return answer.type == self.label.type or answer.type in types

    def has_right_phase(self, answer: Label) -> bool:
        return answer.phase == self.label.phase or f"{answer.type}:{answer.phase}" in self.others

    def has_right_wait(self, answer: Label) -> bool:
        """To a millisecond: an estimate may be a fraction."""
        stated, read = self.label.retry_after_ms, answer.retry_after_ms
        return stated == read or (
            stated is not None and read is not None and abs(stated - read) < 2
        )


def cases(file: str) -> list[Case]:
    """The cases of one of the files."""
    lines = (_DATA / file).read_text(encoding="utf-8").splitlines()
    return [_case(json.loads(line)) for line in lines]


def answer_to(evidence: Evidence) -> Label:
    """What the classifier makes of it."""
    failure = explain(evidence).result
    if not isinstance(failure, ModelFailure):
        return Label(type=NOT_A_MODEL_FAILURE, phase=None, retry_after_ms=None, retryable=False)
    wait = failure.retry_after
    return Label(
        type=failure.type.value,
        phase=failure.token_limit_phase.value if failure.token_limit_phase else None,
        retry_after_ms=None if wait is None else round(wait.total_seconds() * 1_000),
        retryable=failure.retryable,
    )


def answered(file: str) -> Iterator[tuple[Case, Label]]:
    """Each case of the file with the classifier's answer."""
    return ((case, answer_to(case.evidence)) for case in cases(file))


def is_token_limit(case: Case) -> bool:
    return case.label.type == FailureType.TOKEN_LIMIT_EXCEEDED


def _case(row: dict[str, Any]) -> Case:
    return Case(
        id=row["id"],
        evidence=Evidence(
            where=row["where"],
            status=row["status"],
            headers=row["headers"],
            body=row["body"],
            provider=row["provider"],
        ),
        label=Label(**row["expected"]),
        is_ambiguous=row.get("ambiguous", False),
        others=frozenset(row.get("alt", ())),
    )
