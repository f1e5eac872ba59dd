"""Conversations with the demo model."""

from app.ports import ModelRequest
from app.providers.scripted import ScriptedModel
from app.turn.transcript import ModelAnswer
from tests.providers.asking import (
    DEMO_TOOLS,
    Message,
    a_request,
    answer_of,
    asking_for,
    result,
    user,
)


class Naps:
    """A sleep that takes no time and remembers what was asked of it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


MODEL = ScriptedModel(sleep=Naps())


def demo_request(*messages: Message, attempt: int = 1) -> ModelRequest:
    return a_request(*messages, attempt=attempt, tools=DEMO_TOOLS)


def demo_results(answer: ModelAnswer) -> list[dict[str, object]]:
    said = {
        "orders_search": '{"sku": "TP-4410", "orders": 148}',
        "warehouse_stock": '{"sku": "TP-4410", "units": 212}',
        "refunds_list": '{"sku": "TP-4410", "refunds": 9}',
    }
    return [result(call.call_id, said.get(call.tool_name, "{}")) for call in answer.tool_calls]


async def after_the_tools(text: str) -> list[dict[str, object]]:
    """The history in front of the model call that follows the three tools."""
    asked = await answer_of(MODEL, demo_request(user(text)))
    return [user(text), asking_for(asked), *demo_results(asked)]
