"""`turnkeeper failures classify`: a line for a line."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.entrypoints.cli import cli
from tests.providers.failure_corpus import FILES, answered

DATA = Path(__file__).parent.parent / "data"
LIMITED = {
    "where": "response",
    "status": 429,
    "headers": {"Retry-After": "20"},
    "body": {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}},
}
FULL = {
    "where": "stream",
    "body": {"error": {"message": "prompt is too long: 3 tokens > 2 maximum"}},
    "seen": "anywhere",
}
REFUSED = {"where": "response", "status": 400, "body": {"error": {"code": "content_filter"}}}
BAD_LINES = [
    "",
    "[]",
    "{",
    "\ufffd\x00",
    '{"status": 500}',
    '{"where": "disk"}',
    '{"where": "response", "status": "500"}',
    '{"where": "response", "status": true}',
    '{"where": "response", "headers": []}',
    '{"where": "response", "headers": {"retry-after": null}}',
    '{"where": "response", "provider": 7}',
]


def classified(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, ["failures", "classify", *arguments], input=given)


def of_lines(*lines: object) -> Result:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return classified("-", given="".join(f"{text}\n" for text in texts))


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_line_is_answered_with_what_it_is_and_the_rule_that_decided() -> None:
    result = of_lines(LIMITED, FULL, REFUSED)

    assert result.exit_code == 0
    assert rows(result) == [
        {
            "type": "RATE_LIMITED",
            "phase": None,
            "retryAfterMillis": 20_000,
            "retryable": True,
            "rule": "rate",
        },
        {
            "type": "TOKEN_LIMIT_EXCEEDED",
            "phase": "INPUT_CONTEXT",
            "retryAfterMillis": None,
            "retryable": False,
            "rule": "prompt-too-long",
        },
        {
            "type": "NOT_A_MODEL_FAILURE",
            "phase": None,
            "retryAfterMillis": None,
            "retryable": False,
            "rule": "policy",
        },
    ]


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_line_is_told_with_its_number_and_the_others_are_answered(line: str) -> None:
    result = of_lines(LIMITED, line, FULL)

    assert result.exit_code == 1
    first, bad, last = rows(result)
    assert (first["type"], last["type"]) == ("RATE_LIMITED", "TOKEN_LIMIT_EXCEEDED")
    assert list(bad) == ["error"]
    assert bad["error"].startswith("line 2: ")
    assert result.stderr == f"turnkeeper: {bad['error']}\n"


def test_a_file_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    file = str(tmp_path / "nothing.jsonl")
    result = classified(file)

    assert result.exit_code == 1
    assert result.output == f"turnkeeper: {file}: No such file or directory\n"


def test_a_file_without_lines_has_no_answers(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()

    assert (classified(str(empty)).exit_code, classified(str(empty)).stdout) == (0, "")


@pytest.mark.parametrize("file", FILES)
def test_the_command_says_of_every_known_failure_what_the_service_makes_of_it(file: str) -> None:
    result = classified(str(DATA / file))

    assert result.exit_code == 0
    said = [(row["type"], row["phase"], row["retryAfterMillis"]) for row in rows(result)]
    known = [answer for _, answer in answered(file)]
    assert said == [(label.type, label.phase, label.retry_after_ms) for label in known]
