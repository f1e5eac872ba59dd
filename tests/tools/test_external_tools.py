"""Tools that somebody outside carries out: declared as functions that are never run."""

import json
from datetime import timedelta
from typing import Any, cast

import pytest

from app.ports import NotLocalError, Tool
from app.tools import ToolContext, ToolDeclarationError, WaitPolicy, external_tool, tool
from app.turn.agent import Effect, ToolSpec
from app.turn.waits import Unusable
from tests.tools.calls import a_context


@external_tool
def scan_parcel(parcel_id: str, floors: int = 1) -> str:
    """Scan a parcel in the warehouse.

    Not for the model.
    """
    raise AssertionError((parcel_id, floors))


def plain(parcel_id: str) -> None:
    del parcel_id


def test_a_signature_with_a_docstring_is_an_external_tool() -> None:
    declared: Tool = scan_parcel

    assert declared.spec == ToolSpec(
        name="scan_parcel",
        description="Scan a parcel in the warehouse.",
        parameters=declared.spec.parameters,
        effect=Effect.WRITES,
        kind="external",
        max_result_bytes=64 * 1024,
        on_oversize="refuse",
    )
    schema = json.loads(declared.spec.parameters)
    assert list(schema["properties"]) == ["parcel_id", "floors"]
    assert schema["required"] == ["parcel_id"]


def test_it_says_what_it_needs_and_how_long_a_result_may_be() -> None:
    wait = WaitPolicy(timeout=timedelta(hours=1), on_expiry="answer_expired")

    @external_tool(
        name="scan",
        description="Scan.",
        block_following=True,
        needs_approval=True,
        wait=wait,
        max_result_bytes=4 * 1024 * 1024,
        on_oversize="truncate",
    )
    async def scan(parcel_id: str) -> str: ...  # type: ignore[empty-body]

    assert (scan.spec.name, scan.spec.description) == ("scan", "Scan.")
    assert (scan.spec.block_following, scan.spec.needs_approval) == (True, True)
    assert (scan.spec.wait, scan.spec.max_result_bytes) == (wait, 4 * 1024 * 1024)
    assert scan.spec.on_oversize == "truncate"


async def test_it_is_never_run_here() -> None:
    with pytest.raises(NotLocalError, match="'scan_parcel' is carried out by somebody outside"):
        await scan_parcel.run('{"parcel_id":"P1"}', a_context())


def test_arguments_are_looked_at_before_anybody_is_asked() -> None:
    assert scan_parcel.look_at('{"parcel_id":"P1"}') is None
    for arguments in ("", "[]", "{}", '{"parcel_id":1}', '{"parcel_id":"P1","more":1}'):
        misfit = scan_parcel.look_at(arguments)
        assert isinstance(misfit, Unusable)
        assert misfit.content.startswith("Invalid arguments, the tool was not run")


def with_context(context: ToolContext) -> None:
    del context


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_result_bytes": 0}, "max_result_bytes is a number from 1 to 4,194,304, not 0"),
        ({"max_result_bytes": 4_194_305}, "max_result_bytes is a number from 1 to 4,194,304"),
        ({"max_result_bytes": True}, "max_result_bytes is a number"),
        ({"max_result_bytes": "9"}, "max_result_bytes is a number"),
        ({"on_oversize": "cut"}, "on_oversize is 'refuse' or 'truncate', not 'cut'"),
        ({"function": with_context}, "takes a ToolContext"),
        ({"function": print}, "is not made of a plain function"),
    ],
)
def test_what_cannot_be_an_external_tool_is_refused(options: dict[str, object], why: str) -> None:
    given = dict(options)
    function = given.pop("function", plain)

    with pytest.raises(ToolDeclarationError) as refused:
        cast("Any", external_tool)(**given)(function)

    assert why in str(refused.value)


@pytest.mark.parametrize("kind", [tool, external_tool])
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"needs_approval": 1}, "needs_approval is True or False, not 1"),
        ({"needs_approval": None}, "needs_approval is True or False, not None"),
        ({"wait": 5}, "wait must be a WaitPolicy, not 5"),
        ({"wait": timedelta(1)}, "wait must be a WaitPolicy"),
        ({"wait": WaitPolicy(timeout=timedelta(0))}, "wait.timeout must be a timedelta of up to"),
        ({"wait": WaitPolicy(timeout=timedelta(days=366))}, "wait.timeout must be a timedelta"),
        ({"wait": WaitPolicy(timeout=cast("Any", 60))}, "wait.timeout must be a timedelta"),
        (
            {"wait": WaitPolicy(on_expiry=cast("Any", "ask"))},
            "wait.on_expiry must be one of 'keep'",
        ),
    ],
)
def test_options_of_both_kinds_of_tools_keep_to_their_ranges(
    kind: object, options: dict[str, object], why: str
) -> None:
    with pytest.raises(ToolDeclarationError) as refused:
        cast("Any", kind)(**options)(plain)

    assert str(refused.value).startswith("tool 'plain' ")
    assert why in str(refused.value)
