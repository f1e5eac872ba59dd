"""Forms are made from their JSON Schema, and what is wrong is said where it is wrong."""

import pytest

from tests.console.modules import call
from tests.console.pages import Console
from tests.console.waits import ADDRESS

_KINDS = """const kinds = (fields) => fields?.map((field) =>
        [field.name, field.kind, field.isRequired, ...(field.fields ? [kinds(field.fields)] : [])]);
    return a.map((schema) => kinds(m.fieldsOf(schema)) ?? null);"""


def _object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 2000}, "long"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "date-time"}, "text"),
        ({"type": "integer"}, "integer"),
        ({"type": "number"}, "number"),
        ({"type": "boolean"}, "yes"),
        ({"enum": ["a", 1, None]}, "choice"),
        ({"const": 5}, "fixed"),
        ({"type": "array", "items": {"type": "string"}}, "lines"),
        ({"type": "array", "items": {"enum": ["a"]}}, "choices"),
        ({"type": "array", "items": {"type": "integer"}}, "json"),
        ({"type": "array"}, "json"),
        ({"type": "object"}, "json"),
        ({"$ref": "#/$defs/Depot"}, "choice"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "json"),
        ({"type": ["string", "null"]}, "text"),
        ({"type": ["string", "integer"]}, "json"),
        ({"allOf": [{"$ref": "#/$defs/Depot"}], "title": "Depot"}, "choice"),
        ({"$ref": "#/$defs/Loop"}, "json"),
        ({"$ref": "#/nowhere"}, "json"),
        ({"$ref": "https://elsewhere.example/schema"}, "json"),
        ({}, "json"),
        (True, "json"),
    ],
)
async def test_each_schema_has_its_field(bench: Console, schema: object, kind: str) -> None:
    definitions = {"Depot": {"enum": ["Vantaa", "Oulu"]}, "Loop": {"$ref": "#/$defs/Loop"}}
    whole = {**_object(it=schema), "required": ["it"], "$defs": definitions}
    assert await call(bench, "schema", _KINDS, whole) == [[["it", kind, True]]]


async def test_one_level_of_a_group_has_fields_and_the_next_is_json(bench: Console) -> None:
    schema = _object(who=_object(name={"type": "string"}, home=_object(door={"type": "string"})))
    inner = [["name", "text", False], ["home", "json", False]]
    assert await call(bench, "schema", _KINDS, schema) == [[["who", "group", False, inner]]]


@pytest.mark.parametrize(
    "schema", [True, {}, {"type": "string"}, {"type": "object"}, {"oneOf": []}]
)
async def test_what_is_no_list_of_fields_is_written_as_json(bench: Console, schema: object) -> None:
    assert await call(bench, "schema", _KINDS, schema) == [None]


_FILL = """const { fieldsOf } = await import("/console/schema.js");
    const form = m.fieldset(fieldsOf(a[0]));
    const place = document.createElement("div");
    place.append(...form.elements);
    const fields = [...place.querySelectorAll("input, textarea, select")];
    a[1].forEach((value, i) => {
        if (typeof value === "boolean") fields[i].checked = value; else fields[i].value = value;
    });
    return form.read();"""

_EVERYTHING = {
    **_object(
        name={"type": "string"},
        count={"type": "integer"},
        depot={"enum": ["Vantaa", 5]},
        leave={"type": "boolean"},
        lines={"type": "array", "items": {"type": "string"}},
        extra={"type": "object"},
        who=_object(age={"type": "number"}),
        __proto__={"type": "string"},
    ),
    "required": ["name", "count", "depot"],
}


async def test_what_is_filled_in_becomes_values_of_their_types(bench: Console) -> None:
    filled = ["Ida", " 007 ", "1", True, "one\n\n two ", '{"a": [1]}', "-1.5e2", "own"]
    assert await call(bench, "fields", _FILL, _EVERYTHING, filled) == {
        "value": {
            "name": "Ida",
            "count": 7,
            "depot": 5,
            "leave": True,
            "lines": ["one", "two"],
            "extra": {"a": [1]},
            "who": {"age": -150},
            "__proto__": "own",
        }
    }


async def test_what_is_left_out_is_not_sent(bench: Console) -> None:
    filled = ["Ida", "1", "0", False, "", "", "", ""]
    assert await call(bench, "fields", _FILL, _EVERYTHING, filled) == {
        "value": {"name": "Ida", "count": 1, "depot": "Vantaa", "leave": False}
    }


async def test_what_cannot_be_sent_is_said_at_its_field(bench: Console) -> None:
    filled = ["", "9007199254740993", "", False, "", "{", "ten", ""]
    assert await call(bench, "fields", _FILL, _EVERYTHING, filled) == {
        "problems": [
            {"path": ["name"], "text": "This is needed."},
            {
                "path": ["count"],
                "text": "This number has more digits than can be sent exactly.",
            },
            {"path": ["depot"], "text": "This is needed."},
            {"path": ["extra"], "text": "Write it as JSON."},
            {"path": ["who", "age"], "text": "Write a number."},
        ]
    }


@pytest.mark.parametrize(
    ("error", "path"),
    [
        ({"field": "/data/contact/name"}, ["contact", "name"]),
        ({"pointer": "/data/a~1b/~0"}, ["a/b", "~"]),
        ({"field": "body.USER_INPUT.data.floor"}, ["floor"]),
        ({"field": "/data"}, []),
        ({"field": "body.callId"}, None),
        ({}, None),
    ],
)
async def test_an_error_of_the_server_finds_its_field(
    bench: Console, error: object, path: object
) -> None:
    assert await call(bench, "answers", "return m.placeOf(a[0]);", error) == path


async def test_an_error_within_a_group_is_shown_at_the_innermost_field(bench: Console) -> None:
    body = """const { fieldsOf } = await import("/console/schema.js");
        const form = m.fieldset(fieldsOf(a[0]));
        const named = (one) => one?.element.querySelector("label, legend").textContent ?? null;
        return a[1].map((path) => named(form.find(path)));"""
    paths = [["street"], ["contact", "name"], ["contact", "gone"], ["contact"], ["gone"], []]
    assert await call(bench, "fields", body, ADDRESS, paths) == [
        "Street",
        "name optional",
        "Contact optional",
        "Contact optional",
        None,
        None,
    ]
