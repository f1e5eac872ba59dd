"""A tool that needs a form filled in is entered again from the top until it has what it needs."""

import asyncio
from typing import Any

import pytest

from app.ports import FrozenForm, Tool, ToolOutput
from app.ports.schema_check import schema_text
from app.tools import NeedsInput, ToolContext, tool
from app.turn.transcript import Outcome
from app.turn.waits import InputNeeded
from tests.tools.calls import a_context, completed, error


def a_form(key: str, *required: str, surplus: bool = False, **properties: object) -> FrozenForm:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": surplus,
    }
    return FrozenForm(key=key, title=f"Your {key}", schema=schema_text(schema))


ADDRESS = a_form("address", "street", street={"type": "string"}, floor={"type": "integer"})
CARD = a_form("card", "number", number={"type": "string", "pattern": "^[0-9]{4}$"})
WISHES = a_form("wishes", note={"type": "string"})
FORMS = (ADDRESS, CARD, WISHES)


def needed(form: FrozenForm, message: str | None = None) -> ToolOutput:
    return ToolOutput(
        outcome=Outcome.COMPLETED,
        content="",
        needs=InputNeeded(form_key=form.key, schema=form.schema, title=form.title, message=message),
    )


@tool
def order(context: ToolContext) -> str:
    """Order something, once it is known where it goes and who pays."""
    context.require_input("address", message="Where to?")
    filled_in = context.require_input("card")
    return f"{filled_in['street']}, {filled_in['number']}"


async def run(*submissions: dict[str, Any], asking: Tool = order) -> ToolOutput:
    return await asking.run("{}", a_context(submissions=submissions, forms=FORMS))


async def test_case_101_a_tool_goes_on_once_its_forms_have_what_they_need() -> None:
    assert await run() == needed(ADDRESS, "Where to?")
    assert await run({"street": "Elm Street"}) == needed(CARD)
    assert await run({"street": "Elm Street"}, {"number": "4711"}) == completed("Elm Street, 4711")


async def test_a_later_value_takes_the_place_of_an_earlier_one() -> None:
    assert await run(
        {"street": "Elm Street", "number": "4711"}, {"street": "Oak Lane"}
    ) == completed("Oak Lane, 4711")


async def test_what_does_not_fit_the_form_is_asked_for_again() -> None:
    assert await run({"street": "Elm Street"}, {"number": "none"}) == needed(CARD)
    assert await run({"street": 5}) == needed(ADDRESS, "Where to?")


async def test_a_form_that_needs_nothing_is_shown_once() -> None:
    @tool
    def wish(context: ToolContext) -> str:
        return str(context.require_input("wishes"))

    assert await run(asking=wish) == needed(WISHES)
    assert await run({}, asking=wish) == completed("{}")


async def test_case_143_a_form_is_asked_for_however_it_is_wrapped() -> None:
    def ask() -> str:
        raise NeedsInput("address")

    @tool
    def wrapped() -> str:
        try:
            return ask()
        except NeedsInput as asked:
            raise RuntimeError from asked

    @tool
    async def in_a_group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(ask))

    assert await run(asking=wrapped) == needed(ADDRESS)
    assert await run(asking=in_a_group) == needed(ADDRESS)


@pytest.mark.parametrize("how", ["require", "raise"])
async def test_a_form_that_the_agent_does_not_have_is_the_tools_error(how: str) -> None:
    """T43: a failure, not a wait."""

    @tool
    def lost(context: ToolContext) -> None:
        if how == "raise":
            raise NeedsInput("passport")
        context.require_input("passport")

    output = await run(asking=lost)

    assert output == error(output.content)
    assert "form 'passport'" in output.content


def test_what_a_tool_reads_of_the_submissions_is_its_own() -> None:
    context = a_context(submissions=({"street": "Elm Street"},), forms=FORMS)

    context.data["street"] = "Oak Lane"
    context.require_input("address")["street"] = "Oak Lane"

    assert context.data == {"street": "Elm Street"}
