"""Output types: which there are, what a model is told of them, and how its answers are read."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from app.agents import Agent, AgentDeclarationError
from app.agents.structured import MAX_PROBLEM_CHARACTERS, output_type
from app.turn.inputs import InvalidOutput, ValidOutput


class Report(BaseModel):
    """What is left of a product."""

    sku: str
    units: Annotated[int, Field(ge=0)]
    day: date | None = None
    marks: frozenset[str] = frozenset({"new", "open", "paid", "sent", "lost"})


@dataclass
class Point:
    x: float
    y: float = 0


class Entry(TypedDict):
    kind: Literal["in", "out"]
    amount: int


class Stubborn(BaseModel):
    said: str

    @field_validator("said")
    @classmethod
    def _fails(cls, value: str) -> str:
        raise RuntimeError(value)


PLAIN = Agent(id="support", instructions="Help.", output=Report)


def read(declared: object, text: str) -> ValidOutput | InvalidOutput:
    return output_type(declared).read(text)


def value_of(declared: object, text: str) -> object:
    found = read(declared, text)
    assert isinstance(found, ValidOutput), found
    return json.loads(found.value)


def problem_of(declared: object, text: str) -> str:
    found = read(declared, text)
    assert isinstance(found, InvalidOutput), found
    return found.problem


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        (Point, '{"x": 1}', {"x": 1.0, "y": 0.0}),
        (Entry, '{"kind": "in", "amount": 7}', {"kind": "in", "amount": 7}),
        (list[Entry], "[]", []),
        (int | None, "null", None),
        (Literal["yes", "no"], '"yes"', "yes"),
        (dict[str, date], '{"a": "2026-08-01"}', {"a": "2026-08-01"}),
        (Annotated[int, Field(ge=3)], " 3\n", 3),
        (str, r'"a\u0000b"', "a\0b"),
    ],
)
def test_any_type_that_pydantic_validates_is_an_output_type(
    declared: object, text: str, value: object
) -> None:
    assert value_of(declared, text) == value


def test_the_value_is_the_validated_one_with_its_defaults() -> None:
    value = cast("dict[str, Any]", value_of(Report, '{"sku": "TP-4410", "units": "231"}'))

    assert (value["units"], value["day"], len(value["marks"])) == (231, None, 5)


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"x": 1, "y": 2}\n```',
        '```\n{"x": 1, "y": 2}\n```',
        'Here it is:\n\n```json\n{"x": 1,\n "y": 2}\n```\nAnything else?',
        '\n {"x": 1, "y": 2} \n',
    ],
)
def test_the_one_fenced_block_of_an_answer_is_taken_for_it(text: str) -> None:
    assert value_of(Point, text) == {"x": 1.0, "y": 2.0}


def test_a_fence_within_the_json_is_part_of_it() -> None:
    answer = json.dumps("```json\n1\n```\n")

    assert value_of(str, answer) == "```json\n1\n```\n"


def test_of_two_blocks_none_is_chosen() -> None:
    assert problem_of(int, "```json\n1\n```\n```json\n2\n```").startswith("It is not JSON: ")


@pytest.mark.parametrize(
    ("declared", "text", "said"),
    [
        (Report, '{"units": -1}', "- sku: Field required\n- units: Input should be greater"),
        (Report, "There are 231.", "It is not JSON: Expecting value"),
        (Report, "", "It is not JSON"),
        (Report, '{"sku": "a", "sku": "b", "units": 1}', "names one key twice"),
        (float, "NaN", "NaN is no JSON"),
        (float, "1e999", "1e999 is no JSON"),
        (int, "123456789012345678901", "The number 123456789012345678901 is too large"),
        (int, '"seven"', "- the value: Input should be a valid integer"),
        (Stubborn, '{"said": "no"}', "no"),
        (str, r'"\ud800"', "- the value: "),
        (Any, "[" * 65 + "]" * 65, "nested more than 64 deep"),
        (Any, "[" * 100_000 + "]" * 100_000, "nested more than 64 deep"),
    ],
)
def test_what_does_not_fit_is_said_in_words_for_the_model(
    declared: object, text: str, said: str
) -> None:
    assert said in problem_of(declared, text)


def test_a_long_problem_is_cut() -> None:
    assert len(problem_of(list[int], json.dumps(["x"] * 1_000))) == MAX_PROBLEM_CHARACTERS


@given(st.text(max_size=40) | st.from_regex(r'[\[\]{}",:0-9eE+.\\u`j\n -]{0,40}'))
def test_whatever_a_model_says_is_read_and_nothing_is_raised(text: str) -> None:
    for declared in (Any, Report, list[float], str):
        match read(declared, text):
            case ValidOutput(value=value):
                json.loads(value)
            case InvalidOutput(problem=problem):
                problem.encode()


class Opaque: ...


@pytest.mark.parametrize("declared", [Opaque, Callable[[], None], {"type": "object"}, 7])
def test_a_type_that_no_json_describes_is_refused_when_the_agent_is_declared(
    declared: object,
) -> None:
    said = "agent 'support': output must be a type that pydantic can validate"

    with pytest.raises(AgentDeclarationError, match=said):
        Agent(id="support", instructions="", output=declared)


def test_the_output_type_is_part_of_the_declaration() -> None:
    others = {replace(PLAIN, output=each).declaration_hash for each in (None, Report, Point)}

    assert len(others) == 3
    assert PLAIN.exact_version == "h-a98a3403a906"


def test_the_schema_is_the_same_in_every_process() -> None:
    """Python orders sets of strings anew in each process."""
    program = "from tests.agents.test_output_types import PLAIN\nprint(PLAIN.declaration_hash)"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}

    said = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )

    assert said.stdout.strip() == PLAIN.declaration_hash


def test_the_core_knows_the_schema_and_the_runner_the_reader() -> None:
    loaded = PLAIN.loaded()

    assert loaded.output is not None
    assert loaded.agent.output_schema is not None
    schema = json.loads(loaded.agent.output_schema)
    assert list(schema["properties"]) == ["sku", "units", "day", "marks"]
    assert schema["required"] == ["sku", "units"]
    assert replace(PLAIN, output=None).loaded().output is None
