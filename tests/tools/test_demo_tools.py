import json
from typing import Any, cast

import pytest

from app.ports import Tool
from app.tools.demo import LONGEST_SECONDS, SHORTEST_SECONDS, demo_tools
from app.turn.agent import Effect
from app.turn.transcript import Outcome
from tests.tools.calls import a_context

READING = ("orders_search", "warehouse_stock", "refunds_list")


class Pause:
    """Remembers how long it should have slept."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def told(tools: tuple[Tool, ...], name: str, **arguments: str) -> dict[str, Any]:
    asked = next(each for each in tools if each.spec.name == name)
    output = await asked.run(json.dumps(arguments), a_context())
    assert output.outcome is Outcome.COMPLETED, output
    return cast("dict[str, Any]", json.loads(output.content))


def test_the_demo_tools_read_but_for_the_one_that_saves_a_note() -> None:
    effects = {each.spec.name: each.spec.effect for each in demo_tools()}

    assert effects == {**dict.fromkeys(READING, Effect.READS), "note_save": Effect.WRITES}


@pytest.mark.parametrize("name", READING)
async def test_the_same_question_gets_the_same_answer_at_the_same_human_pace(name: str) -> None:
    pause = Pause()

    first = await told(demo_tools(pause), name, sku="TP-4410")
    again = await told(demo_tools(pause), name, sku="TP-4410")
    other = await told(demo_tools(pause), name, sku="TP-4411")

    assert first == again != other
    assert pause.seconds[0] == pause.seconds[1]
    assert all(SHORTEST_SECONDS <= each <= LONGEST_SECONDS for each in pause.seconds)


async def test_orders_before_the_day_asked_for_are_left_out() -> None:
    tools = demo_tools(Pause())

    whole = await told(tools, "orders_search", sku="TP-4410")
    since = await told(tools, "orders_search", sku="TP-4410", since="2026-08-20")
    after = await told(tools, "orders_search", sku="TP-4410", since="2027-01-01")

    assert whole["orders"] > since["orders"] > after["orders"] == 0
    assert all(each["day"] >= "2026-08-20" for each in since["latest"])


async def test_the_answers_of_the_reading_tools_agree_with_themselves() -> None:
    tools = demo_tools(Pause())

    stock = await told(tools, "warehouse_stock", sku="TP-4410")
    refunds = await told(tools, "refunds_list", sku="TP-4410")

    assert stock["units"] == sum(stock["sites"].values())
    assert refunds["refunds"] == len(refunds["paid"])


async def test_a_note_has_one_number_over_all_attempts_of_its_call() -> None:
    tools = demo_tools(Pause())

    first = await told(tools, "note_save", text="call back")
    again = await told(tools, "note_save", text="call back")

    assert first == again
