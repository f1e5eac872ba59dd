"""Whatever a model writes as arguments, the call has an answer."""

import json
from datetime import date
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel

from app.ports import ToolOutput
from app.tools import tool
from app.turn.transcript import Outcome
from tests.tools.calls import a_context, completed


class Line(BaseModel):
    sku: str
    count: int = 1


@tool
async def order(
    lines: list[Line],
    day: date | None = None,
    state: Literal["open", "sent"] = "open",
    extra: dict[str, float] | None = None,
) -> object:
    return [lines, day, state, extra]


@tool
async def echo(sku: str, count: int = 1, note: str | None = None) -> object:
    return {"sku": sku, "count": count, "note": note}


json_values: SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(["lines", "day", "state", "extra", "sku", "count"])
near_misses = st.dictionaries(names, json_values, max_size=4)


async def said(arguments: str) -> ToolOutput:
    return await order.run(arguments, a_context())


@settings(deadline=None)
@given(arguments=(json_values | near_misses).map(json.dumps))
async def test_any_json_as_arguments_gets_an_answer(arguments: str) -> None:
    output = await said(arguments)

    assert output.outcome in {Outcome.COMPLETED, Outcome.ERROR}
    assert "pydantic.dev" not in output.content
    output.content.encode()


@settings(deadline=None)
@given(arguments=st.text(alphabet=st.characters()) | st.text(alphabet='{}[]",:\\u0019dl eE+-.'))
async def test_any_text_as_arguments_gets_an_answer(arguments: str) -> None:
    output = await said(arguments)

    assert output.outcome is Outcome.ERROR
    output.content.encode()


@settings(deadline=None)
@given(
    sku=st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    count=st.integers(min_value=-(2**70), max_value=2**70),
    note=st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
)
async def test_arguments_that_fit_arrive_as_they_were_written(
    sku: str, count: int, note: str | None
) -> None:
    written = {"sku": sku, "count": count, "note": note}

    output = await echo.run(json.dumps(written), a_context())

    assert json.loads(output.content) == written


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('"{}"', "not a JSON object"),
        ("{} {}", "not JSON"),
        ("{'sku': 1}", "not JSON"),
        ('{"sku": NaN}', "NaN is no JSON"),
        ('{"sku": "a", "sku": "b"}', "an object names one key twice"),
        ('{"sku": "\\ud800"}', "Invalid JSON"),
        ('{"sku": "\ud800"}', "arguments: "),
        ('{"sku": ' + "[" * 100_000, "not JSON"),
        ('{"sku": "a", "count": ' + "9" * 5_000 + "}", "not JSON"),
        ('{"p0": "a"}', "p0: Extra inputs are not permitted"),
    ],
)
async def test_what_is_no_json_object_is_refused_saying_why(arguments: str, why: str) -> None:
    output = await echo.run(arguments, a_context())

    assert output.outcome is Outcome.ERROR
    assert output.content.startswith("Invalid arguments, the tool was not run:")
    assert why in output.content


async def test_a_default_is_not_shared_between_calls() -> None:
    @tool
    async def collect(into: list[int] = []) -> object:  # noqa: B006
        into.append(1)
        return into

    await collect.run("{}", a_context())

    assert await collect.run("{}", a_context()) == completed("[1]")
