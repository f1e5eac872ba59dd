import json
from typing import Any, cast

import pytest

from app.ports import Tool
from app.tools.demo import LONGEST_SECONDS, SHORTEST_SECONDS, demo_tools
from app.turn.agent import Effect
from app.turn.transcript import Outcome
from app.turn.waits import ApprovalNeeded
from tests.tools.calls import a_context, approved

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


def test_the_demo_tools_look_up_write_and_ask_others() -> None:
    specs = {each.spec.name: each.spec for each in demo_tools()}

    assert {name for name, spec in specs.items() if spec.effect is Effect.READS} == {
        *READING,
        "request_user_input",
    }
    assert specs["note_save"].effect is Effect.WRITES
    assert {name for name, spec in specs.items() if spec.needs_approval} == {"refund_pay"}
    assert specs["parcel_scan"].kind == "external"
    assert specs["request_user_input"].kind == "input"


async def test_an_invoice_is_paid_once_finance_and_compliance_have_approved() -> None:
    pay = next(each for each in demo_tools(Pause()) if each.spec.name == "invoice_pay")
    content = {"invoiceId": "INV-1", "cents": 500}
    levels = [
        approved({**content, "level": level}, tool_name="invoice_pay")
        for level in ("finance", "compliance")
    ]

    outputs = [
        await pay.run(
            '{"invoice_id":"INV-1","cents":500}',
            a_context(tool_name="invoice_pay", approvals=tuple(levels[:count])),
        )
        for count in range(3)
    ]

    asked = [output.needs for output in outputs[:2]]
    assert [each.content for each in asked if isinstance(each, ApprovalNeeded)] == [
        '{"cents":500,"invoiceId":"INV-1","level":"finance"}',
        '{"cents":500,"invoiceId":"INV-1","level":"compliance"}',
    ]
    assert json.loads(outputs[2].content)["cents"] == 500


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
