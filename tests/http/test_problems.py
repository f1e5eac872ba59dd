"""The one table of errors, and a page for each of its codes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.http.problems import PROBLEMS, problem
from app.services import errors as refusals
from app.turn import errors as rejections

PAGES = Path(__file__).parents[2] / "docs/problems"
CODES = sorted(PROBLEMS)
SECTIONS = ["When it comes", "What is true then", "What to do", "Example"]


def page(code: str) -> str:
    return (PAGES / f"{code}.md").read_text()


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert sorted(path.stem for path in PAGES.glob("*.md")) == CODES


@pytest.mark.parametrize("code", CODES)
def test_a_page_says_what_the_table_says(code: str) -> None:
    lines = page(code).splitlines()

    assert lines[0] == f"# {code}"
    assert lines[2] == f"**{PROBLEMS[code].status}** · {PROBLEMS[code].title}"
    assert re.findall(r"^## (.+)$", page(code), re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("code", CODES)
def test_a_page_shows_a_problem_of_its_code(code: str) -> None:
    [example] = re.findall(r"```json\n(.+?)```", page(code), re.DOTALL)

    shown: dict[str, Any] = json.loads(example)
    made = json.loads(bytes(problem(code, shown["detail"], {"type": "http"}).body))
    assert {name: shown[name] for name in made} == made


@pytest.mark.parametrize("code", CODES)
def test_a_problem_has_what_the_standard_asks_for(code: str) -> None:
    scope: dict[str, Any] = {"type": "http"}

    answer = problem(code, "what happened", scope, extra={"turnId": "t1"})

    assert answer.status_code == PROBLEMS[code].status
    assert answer.media_type == "application/problem+json"
    assert json.loads(bytes(answer.body)) == {
        "type": f"urn:turnkeeper:problem:{code}",
        "title": PROBLEMS[code].title,
        "status": PROBLEMS[code].status,
        "detail": "what happened",
        "code": code,
        "turnId": "t1",
    }
    assert scope["state"]["problem_code"] == code


def test_every_refusal_of_the_core_and_of_the_use_cases_is_in_the_table() -> None:
    rejected = rejections.Rejected.__subclasses__()
    refused = refusals.Refused.__subclasses__()

    assert rejected
    assert refused
    codes = {error.code for error in rejected} | {error.code for error in refused}
    assert codes <= set(PROBLEMS)


def test_every_refusal_names_itself_by_its_docstring() -> None:
    for error in (*rejections.Rejected.__subclasses__(), *refusals.Refused.__subclasses__()):
        assert error.__doc__
        assert error.__doc__.endswith(".")
