"""Values against a frozen JSON Schema: what does not fit is said field by field, and safely."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from app.ports.json_schema import schema_of
from app.ports.schema_check import (
    MAX_DEPTH,
    MAX_PROBLEMS,
    MAX_VALUES,
    FieldProblem,
    UnusableSchemaError,
    problems_in,
    schema_text,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


class Address(BaseModel):
    """Where to send a parcel."""

    street: Annotated[str, Field(min_length=1, max_length=40)]
    number: Annotated[int, Field(ge=1)]
    floor: Annotated[int, Field(ge=0)] | None = None


FORM = schema_text(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "born": {"type": "string", "format": "date"},
            "mail": {"type": "string", "format": "email"},
            "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
            "units": {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]},
            "where": {"type": "object", "properties": {"a/b": {"type": "integer"}}},
            "tags": {"type": "array", "items": {"enum": ["new", "used"]}},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
)


def _found(value: object) -> list[tuple[str, str]]:
    return [(each.pointer, each.problem) for each in problems_in(FORM, value)]


# --- What is said ---------------------------------------------------------------------------------


@given(JSON)
def test_whatever_the_value_it_fits_or_its_problems_lead_into_it(value: object) -> None:
    for problem in problems_in(FORM, value):
        here: Any = value
        for step in problem.path[:-1]:
            here = here[step]
        assert problem.problem


@given(st.text("xyz", min_size=6))
def test_a_problem_says_nothing_of_the_value(secret: str) -> None:
    value = {"name": 1, "born": secret, "mail": secret, "code": secret, "tags": [secret]}

    problems = problems_in(FORM, {**value, "units": secret})

    assert len(problems) == 6
    assert not any(secret in each.problem for each in problems)


@given(st.fixed_dictionaries({"street": st.text(max_size=3), "number": st.integers(-2, 2)}))
def test_a_model_s_schema_takes_what_the_model_takes(value: dict[str, object]) -> None:
    try:
        Address.model_validate_json(json.dumps(value))
        is_taken = True
    except ValidationError:
        is_taken = False
    schema = schema_text(json.loads(schema_of(TypeAdapter(Address))))

    assert (problems_in(schema, value) == ()) is is_taken


def test_what_fits_has_no_problems() -> None:
    fits = {"name": "Ada", "born": "1815-12-10", "code": "TP-1", "units": None, "tags": ["new"]}

    assert _found(fits) == []


def test_every_problem_names_its_field() -> None:
    wrong = {
        "name": "",
        "born": "yesterday",
        "mail": "nobody",
        "code": "tp1",
        "units": 10,
        "where": {"a/b": "1"},
        "tags": ["new", "lost"],
    }

    assert {pointer for pointer, _ in _found(wrong)} == {
        "/name",
        "/born",
        "/mail",
        "/code",
        "/units",
        "/where/a~1b",
        "/tags/1",
    }


def test_a_field_that_is_missing_or_surplus_is_named_itself() -> None:
    assert sorted(_found({"nam": "Ada", "naem": "Ada"})) == [
        ("/naem", "there is no such field"),
        ("/nam", "there is no such field"),
        ("/name", "it is required"),
    ]


def test_an_optional_field_is_told_about_as_what_it_is_when_it_is_there() -> None:
    assert _found({"name": "Ada", "units": 10}) == [
        ("/units", "it is greater than the maximum of 9")
    ]


def test_a_field_of_none_of_the_right_types_is_told_so() -> None:
    ((pointer, problem),) = _found({"name": "Ada", "units": "many"})

    assert pointer == "/units"
    assert "not valid under any" in problem


@pytest.mark.parametrize("value", [True, 1.5, "1", None, [], {}])
def test_a_whole_number_is_nothing_else(value: object) -> None:
    assert problems_in(schema_text({"type": "integer"}), value)


# --- Bounds ---------------------------------------------------------------------------------------


def test_a_value_nested_beyond_all_use_is_not_looked_at() -> None:
    anything = schema_text({"additionalProperties": {"$ref": "#"}})
    deep: dict[str, object] = {}
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}

    assert problems_in(anything, deep) == ()
    (problem,) = problems_in(anything, {"a": deep})
    assert problem == FieldProblem(
        path=(), problem="its lists and objects are nested more than 64 deep"
    )
    for _ in range(200_000):
        deep = {"a": deep}
    assert problems_in(anything, deep) == (problem,)


def test_a_value_too_large_is_not_looked_at() -> None:
    numbers = schema_text({"items": {"type": "string"}})

    assert len(problems_in(numbers, [1] * (MAX_VALUES - 1))) == MAX_PROBLEMS
    assert problems_in(numbers, [1] * MAX_VALUES) == (
        FieldProblem(path=(), problem="it has more than 10,000 values"),
    )


def test_a_pattern_takes_no_longer_for_a_text_made_to_be_hard() -> None:
    """A backtracking engine would need 2^10,000 steps."""
    schema = schema_text({"type": "string", "pattern": "^(a+)+$"})

    assert problems_in(schema, "a" * 10_000) == ()
    assert problems_in(schema, "a" * 10_000 + "!") != ()


@pytest.mark.parametrize("value", [{1: 2}, {"set"}, b"{}", "\ud800", float("nan")])
def test_what_is_no_json_does_not_fit(value: object) -> None:
    assert problems_in(schema_text({"type": "object"}), value)


# --- What can be a schema -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([], "a JSON Schema is an object, not list"),
        ("{}", "a JSON Schema is an object, not str"),
        (None, "a JSON Schema is an object, not NoneType"),
        ({"type": "strin"}, "(at 'type')"),
        ({"properties": {"a": {"minimum": "1"}}}, "(at 'properties/a/minimum')"),
        ({"$ref": "https://schemas.invalid/address.json"}, "https://schemas.invalid/address.json"),
        ({"$ref": "file:///etc/hostname"}, "file:///etc/hostname"),
        ({"$schema": "https://schemas.invalid/draft-99"}, "draft-99"),
        ({"$ref": "#/$defs/missing"}, "/$defs/missing"),
        ({"pattern": "(?=a)b"}, "(at 'pattern')"),
        ({"const": float("inf")}, "cannot be written as JSON"),
        ({"const": {1, 2}}, "cannot be written as JSON"),
        ({"const": "\ud800"}, "cannot be written as JSON"),
        ({"description": "a" * 70_000}, "65,536 are allowed"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_reason(schema: object, why: str) -> None:
    with pytest.raises(UnusableSchemaError) as refused:
        schema_text(schema)

    assert why in str(refused.value)


def test_a_schema_that_holds_itself_is_refused() -> None:
    schema: dict[str, object] = {}
    schema["not"] = schema

    with pytest.raises(UnusableSchemaError):
        schema_text(schema)


def test_a_schema_keeps_the_order_of_its_fields_for_those_who_draw_a_form() -> None:
    fields = {"zip": True, "city": True, "name": True}

    assert schema_text({"properties": fields}) == (
        '{"properties":{"zip":true,"city":true,"name":true}}'
    )


def test_an_older_draft_is_read_as_what_it_is() -> None:
    pair = {"items": [{"type": "string"}]}

    with pytest.raises(UnusableSchemaError):
        schema_text(pair)
    older = schema_text({"$schema": "http://json-schema.org/draft-07/schema#", **pair})
    assert problems_in(older, [1]) == (
        FieldProblem(path=(0,), problem='it is not of type "string"'),
    )
