"""A tool that has somebody approve what it is about to do: that very content and no other."""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel

from app.ports import Tool, ToolOutput
from app.ports.suspensions import MAX_APPROVAL_BYTES, MAX_QUESTION_CHARACTERS, canonical_json
from app.tools import NeedsApproval, ToolContext, tool
from app.turn.transcript import Outcome
from app.turn.waits import ApprovalNeeded, fingerprint_of
from tests.tools.calls import a_context, approved, completed, error

JSON: SearchStrategy[object] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner)
    ),
    max_leaves=8,
)


def needed(content: str, message: str | None = None) -> ToolOutput:
    return ToolOutput(
        outcome=Outcome.COMPLETED,
        content="",
        needs=ApprovalNeeded(
            content=content, fingerprint=fingerprint_of("pay", content), message=message
        ),
    )


def turned(value: object) -> object:
    """The same value, its keys in another order."""
    match value:
        case dict():
            items = list(cast("dict[str, object]", value).items())
            return {key: turned(each) for key, each in reversed(items)}
        case list():
            return [turned(each) for each in cast("list[object]", value)]
        case _:
            return value


# --- What is approved -----------------------------------------------------------------------------


@given(JSON)
def test_case_98_the_order_of_keys_makes_no_other_content(content: object) -> None:
    context = a_context(approvals=(approved(content),))

    assert canonical_json(turned(content)) == canonical_json(content)
    assert context.is_approved(turned(content))


@given(JSON, JSON)
def test_case_96_another_content_is_not_approved(one: object, other: object) -> None:
    is_same = canonical_json(one) == canonical_json(other)

    assert a_context(approvals=(approved(one),)).is_approved(other) is is_same


@given(JSON)
def test_what_is_approved_reads_as_what_was_asked(content: object) -> None:
    assert json.loads(canonical_json(content)) == content


class Parcel(BaseModel):
    """What is sent."""

    labels: set[str]
    day: date


@dataclass(frozen=True)
class Money:
    cents: int
    rate: Decimal


def test_models_dates_decimals_and_sets_are_their_json() -> None:
    parcel = Parcel(labels={"b", "a"}, day=date(2026, 8, 1))

    assert canonical_json({"parcel": parcel, "money": Money(5, Decimal("1.50"))}) == (
        '{"money":{"cents":5,"rate":"1.50"},"parcel":{"day":"2026-08-01","labels":["a","b"]}}'
    )


def test_a_set_is_the_same_content_in_every_process() -> None:
    program = (
        "from app.ports.suspensions import canonical_json\n"
        "print(canonical_json({w for w in 'one two three four five six'.split()}))"
    )
    said = {
        subprocess.run(  # noqa: S603 - this very interpreter
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert said == {'["five","four","one","six","three","two"]\n'}


@pytest.mark.parametrize(
    "content", [float("nan"), object(), "\ud800", {"a": {1: 2, "b": 3}}, "x" * MAX_APPROVAL_BYTES]
)
def test_what_nobody_can_be_shown_cannot_be_approved(content: object) -> None:
    with pytest.raises(ValueError, match="what is to be approved"):
        NeedsApproval(content)
    with pytest.raises(ValueError, match="what is to be approved"):
        a_context().require_approval(content)


def test_an_approval_is_of_the_tool_that_asked_for_it() -> None:
    other = approved({"cents": 5}, tool_name="refund")

    assert not a_context(approvals=(other,)).is_approved({"cents": 5})


def test_the_approval_of_the_call_by_its_policy_is_another_one() -> None:
    """AF-96: neither stage takes the place of the other."""
    of_the_call = approved({"cents": 5}, stage="policy")

    assert not a_context(approvals=(of_the_call,)).is_approved({"cents": 5})


# --- Asking ---------------------------------------------------------------------------------------


@tool
async def pay(cents: int, context: ToolContext) -> str:
    """Pay, once finance and then compliance have approved."""
    context.require_approval({"level": "finance", "cents": cents}, message=f"Pay {cents}?")
    context.require_approval({"level": "compliance", "cents": cents})
    return f"paid {cents}"


async def test_a_tool_goes_on_once_everything_it_asks_for_is_approved() -> None:
    finance = approved({"cents": 5, "level": "finance"})
    compliance = approved({"cents": 5, "level": "compliance"})

    async def run(*approvals: object) -> ToolOutput:
        return await pay.run('{"cents":5}', a_context(approvals=approvals))  # type: ignore[arg-type]

    assert await run() == needed('{"cents":5,"level":"finance"}', "Pay 5?")
    assert await run(finance) == needed('{"cents":5,"level":"compliance"}')
    assert await run(compliance) == needed('{"cents":5,"level":"finance"}', "Pay 5?")
    assert await run(finance, compliance) == completed("paid 5")


async def test_an_approval_for_another_amount_counts_for_nothing() -> None:
    context = a_context(approvals=(approved({"cents": 4, "level": "finance"}),))

    assert await pay.run('{"cents":5}', context) == needed(
        '{"cents":5,"level":"finance"}', "Pay 5?"
    )


def _ask() -> str:
    raise NeedsApproval({"cents": 5}, message="Pay?")


@tool(name="pay")
def blocking() -> str:
    return _ask()


@tool(name="pay")
async def awaited() -> str:
    return _ask()


@tool(name="pay")
def wrapped_twice() -> str:
    try:
        try:
            return _ask()
        except NeedsApproval as asked:
            raise RuntimeError("in the middle") from asked
    except RuntimeError as error:
        raise ValueError("outside") from error


@tool(name="pay")
def hidden() -> str:
    try:
        return _ask()
    except NeedsApproval:
        raise KeyError("lost?") from None


@tool(name="pay")
async def in_a_group() -> str:
    async def ask() -> None:
        _ask()

    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
    return "never"


@pytest.mark.parametrize(
    "asking",
    [blocking, awaited, wrapped_twice, hidden, in_a_group],
    ids=["blocking", "awaited", "wrapped_twice", "hidden", "in_a_group"],
)
async def test_case_143_an_approval_is_asked_for_however_it_is_wrapped(asking: Tool) -> None:
    assert await asking.run("{}", a_context()) == needed('{"cents":5}', "Pay?")


async def test_a_message_to_a_person_can_be_stored_and_is_of_a_bounded_length() -> None:
    @tool
    def wordy() -> None:
        raise NeedsApproval(1, message="?" * 100_000)

    @tool
    def half() -> None:
        raise NeedsApproval(1, message="a\ud800b")

    @tool
    def silent() -> None:
        raise NeedsApproval(1, message=" \n")

    said = [(await each.run("{}", a_context())).needs for each in (wordy, half, silent)]

    messages = [each.message for each in said if isinstance(each, ApprovalNeeded)]
    assert messages == ["?" * (MAX_QUESTION_CHARACTERS - 1) + "…", "a\ufffdb", None]


async def test_a_content_that_cannot_be_approved_is_the_tools_error() -> None:
    @tool
    def odd(context: ToolContext) -> None:
        context.require_approval(object())

    output = await odd.run("{}", a_context())

    assert output == error(output.content)
    assert output.content.startswith("ValueError: what is to be approved must be JSON")
