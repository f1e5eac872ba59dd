"""The demo model's calls that people and outside tools see to."""

import json
from collections.abc import Sequence

import pytest

from app.providers.demo_people import PEOPLE
from app.providers.demo_script import HELP
from app.turn.agent import ToolSpec
from app.turn.failures import FailureType
from app.turn.transcript import ModelAnswer
from tests.providers.asking import (
    Message,
    a_request,
    answer_of,
    asking_for,
    ending_of,
    failure_of,
    result,
    user,
)
from tests.providers.demo_talk import MODEL, demo_request

TOOLS = tuple(
    ToolSpec(name=name, description=name, parameters='{"type":"object"}')
    for name in ("orders_search", *{each.tool for wanted in PEOPLE.values() for each in wanted})
)


async def answered(*messages: Message, attempt: int = 1) -> ModelAnswer:
    return await answer_of(MODEL, a_request(*messages, attempt=attempt, tools=TOOLS))


async def after(text: str, said: str) -> list[dict[str, object]]:
    """The history once everything that was called has its result."""
    asked = await answered(user(text))
    results = [result(call.call_id, said) for call in asked.tool_calls]
    return [user(text), asking_for(asked), *results]


def names(answer: ModelAnswer) -> Sequence[str]:
    return [call.tool_name for call in answer.tool_calls]


@pytest.mark.parametrize("word", PEOPLE)
async def test_a_command_makes_its_calls_and_tells_what_came_of_them(word: str) -> None:
    asked = await answered(user(f"/{word}"))
    told = await answered(*await after(f"/{word}", "Done, and well."), attempt=2)

    assert names(asked) == [each.tool for each in PEOPLE[word]]
    assert all(isinstance(json.loads(call.arguments), dict) for call in asked.tool_calls)
    assert told.tool_calls == ()
    assert "Done, and well." in told.text


@pytest.mark.parametrize("word", PEOPLE)
def test_every_command_is_in_the_help(word: str) -> None:
    assert f"/{word}" in HELP


async def test_an_agent_without_the_tool_looks_things_up_instead() -> None:
    answer = await answer_of(MODEL, demo_request(user("/refund")))

    assert "orders_search" in names(answer)


async def test_another_message_to_the_waiting_turn_is_another_question() -> None:
    given_up = await after("/refund", "It was not run.")

    answer = await answered(*given_up, user("How does TP-4410 sell?"), attempt=2)

    assert names(answer) == ["orders_search"]


async def test_said_again_it_is_called_again() -> None:
    given_up = await after("/scan", "It was not run.")

    answer = await answered(*given_up, user("/scan"), attempt=2)

    assert names(answer) == ["parcel_scan"]


async def test_an_outage_may_follow_the_call() -> None:
    history = await after("/refund\n/outage quota", "Paid.")

    failure = await failure_of(MODEL, a_request(*history, attempt=2, tools=TOOLS))
    assert failure.type is FailureType.QUOTA_EXCEEDED
    ending = await ending_of(MODEL, a_request(*history, attempt=3, tools=TOOLS))
    assert isinstance(ending, ModelAnswer)
    assert "Paid." in ending.text
