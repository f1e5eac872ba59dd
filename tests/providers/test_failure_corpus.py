"""The classifier on a thousand failures from public reports and providers' pages."""

import json
from dataclasses import replace

import pytest

from app.providers.failures import Evidence
from tests.providers.evidence import QUOTA
from tests.providers.failure_corpus import (
    FILES,
    NOT_A_MODEL_FAILURE,
    Case,
    answer_to,
    answered,
    cases,
    is_token_limit,
)

MOSTLY = 0.97
"""The share that must be right where an engineer could differ."""

each_file = pytest.mark.parametrize("file", FILES)


def share(wrong: list[str], all_cases: list[Case]) -> float:
    return 1 - len(wrong) / len(all_cases)


@each_file
def test_the_type_is_right_where_there_is_no_doubt(file: str) -> None:
    wrong = [
        case.id
        for case, answer in answered(file)
        if not case.is_ambiguous and answer.type != case.label.type
    ]
    certain = [case for case in cases(file) if not case.is_ambiguous]

    assert share(wrong, certain) >= 0.99, wrong


@each_file
def test_the_type_is_one_that_an_engineer_could_name(file: str) -> None:
    wrong = [case.id for case, answer in answered(file) if not case.has_right_type(answer)]

    assert share(wrong, cases(file)) >= MOSTLY, wrong


@each_file
def test_the_phase_of_a_token_limit_is_right(file: str) -> None:
    limits = [(case, answer) for case, answer in answered(file) if is_token_limit(case)]
    wrong = [case.id for case, answer in limits if not case.has_right_phase(answer)]

    assert share(wrong, [case for case, _ in limits]) >= MOSTLY, wrong


@each_file
def test_every_stated_wait_is_read_and_none_is_invented(file: str) -> None:
    assert [case.id for case, answer in answered(file) if not case.has_right_wait(answer)] == []


@each_file
def test_what_may_be_repeated_is_right(file: str) -> None:
    wrong = [case.id for case, answer in answered(file) if answer.retryable != case.label.retryable]

    assert share(wrong, cases(file)) >= MOSTLY, wrong


@each_file
def test_an_exhausted_quota_is_never_retried(file: str) -> None:
    retried = [
        case.id
        for case, answer in answered(file)
        if answer.retryable
        and (answer.type == QUOTA or (case.label.type == QUOTA and not case.is_ambiguous))
    ]

    assert retried == []


# --- Through a gateway ---------------------------------------------------------------------------


def _in_a_message(body: object) -> object:
    return {"error": {"message": json.dumps(body), "type": "upstream_error", "code": "500"}}


def _printed_by_python(body: object) -> object:
    return {"detail": f"Error in the gateway: upstream said {body!r}"}


def _in_a_list_in_raw(body: object) -> object:
    inner = json.dumps([body], ensure_ascii=False)
    return {"error": {"message": "Provider returned error", "metadata": {"raw": inner}}}


def _as_bytes(body: object) -> object:
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    "wrap",
    [_in_a_message, _printed_by_python, _in_a_list_in_raw, _as_bytes],
    ids=lambda f: f.__name__,
)
@each_file
def test_an_error_with_words_keeps_its_type_inside_a_gateways(file: str, wrap: object) -> None:
    assert callable(wrap)
    spoken = [case for case in cases(file) if _is_told_by_its_words(case)]
    changed = [
        case.id
        for case in spoken
        if answer_to(_relayed(case.evidence, wrap(case.evidence.body))).type
        != answer_to(case.evidence).type
    ]

    assert len(spoken) > 100
    assert share(changed, spoken) >= 0.98, changed


def _is_told_by_its_words(case: Case) -> bool:
    """Not by its status alone, which a gateway replaces."""
    evidence = case.evidence
    if evidence.where != "response" or not isinstance(evidence.body, dict):
        return False
    answer = answer_to(evidence)
    return (
        answer.type not in (NOT_A_MODEL_FAILURE, "UNAVAILABLE")
        and answer_to(replace(evidence, status=None)).type == answer.type
    )


def _relayed(evidence: Evidence, body: object) -> Evidence:
    return replace(evidence, status=500, body=body)
