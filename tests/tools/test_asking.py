"""A tool that asks the user, plainly or wrapped in whatever is around it (case 143)."""

import asyncio

import pytest

from app.ports import Tool, ToolOutput
from app.ports.suspensions import MAX_QUESTION_CHARACTERS
from app.tools import Ask, tool
from app.turn.transcript import Outcome
from tests.tools.calls import a_context


async def run(asking: Tool) -> ToolOutput:
    return await asking.run("{}", a_context())


def a_question(question: str) -> ToolOutput:
    return ToolOutput(outcome=Outcome.COMPLETED, content="", question=question)


@tool
def blocking() -> str:
    raise Ask("Where to?")


@tool
async def awaited() -> str:
    raise Ask("Where to?")


def _choose() -> str:
    raise Ask("Where to?")


@tool
def wrapped_twice() -> str:
    try:
        try:
            return _choose()
        except Ask as asked:
            raise RuntimeError("in the middle") from asked
    except RuntimeError as error:
        raise ValueError("outside") from error


@tool
def hidden() -> str:
    try:
        return _choose()
    except Ask:
        raise KeyError("lost?") from None


@tool
async def in_a_group() -> str:
    async def ask() -> None:
        raise Ask("Where to?")

    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
    return "never"


@pytest.mark.parametrize(
    "asking", [blocking, awaited, wrapped_twice, hidden, in_a_group], ids=lambda t: t.spec.name
)
async def test_case_143_a_question_is_one_however_it_is_wrapped(asking: Tool) -> None:
    assert await run(asking) == a_question("Where to?")


def test_a_question_without_words_is_refused_where_it_is_raised() -> None:
    with pytest.raises(ValueError, match="needs words"):
        Ask(" \n")


async def test_a_long_question_is_cut_and_one_that_cannot_be_stored_is_mended() -> None:
    @tool
    def long() -> str:
        raise Ask("?" * 100_000)

    @tool
    def half() -> str:
        raise Ask("a\ud800b")

    question = (await run(long)).question
    assert question is not None
    assert len(question) == MAX_QUESTION_CHARACTERS
    assert question.endswith("?…")
    assert await run(half) == a_question("a\ufffdb")
