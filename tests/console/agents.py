"""A faster built-in agent, and others for gated tools, failures, limits, and calls that wait."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from app.agents import Agent, Changeable, Form, Limits, RetryPolicy
from app.tools import Ask, ToolContext, external_tool, tool
from app.tools.demo import demo_tools

GATES = "CONSOLE_TESTS_GATES"
"""The variable that names the folder of the gates."""

_INSTRUCTIONS = "Look things up, then answer."
_ONCE_MORE = RetryPolicy(max_retries=1, initial_delay=timedelta(seconds=1.5), jitter="none")


@tool(name="orders_search", effect="reads")
async def gated_search(sku: str) -> dict[str, object]:
    """Count the orders of a product, once its gate is open."""
    gate = Path(os.environ[GATES]) / sku
    while not gate.exists():  # noqa: ASYNC110 - the test is another process
        await asyncio.sleep(0.02)  # between two looks
    return {"sku": sku, "orders": 148}


@tool(name="orders_search", effect="reads", on_error="retry_then_model", retry=_ONCE_MORE)
def shaky_search(sku: str, context: ToolContext) -> dict[str, object]:
    """Count the orders of a product; the first attempt fails."""
    if context.attempt == 1:
        raise TimeoutError("the search does not answer")
    return {"sku": sku, "orders": 148}


@tool(name="warehouse_stock", effect="reads")
def stock(sku: str) -> dict[str, object]:
    """Say how many units of a product there are."""
    return {"sku": sku, "units": 212}


@tool(name="orders_search", effect="reads")
def asking_search(sku: str) -> str:
    """Count the orders of a product, once it is known which year is meant."""
    raise Ask(f"Which year of {sku} do you mean?")


@tool(name="orders_search", effect="reads", needs_approval=True)
def approved_search(sku: str, context: ToolContext) -> dict[str, object]:
    """Count the orders of a product, once it is approved to look and to tell."""
    context.require_approval(
        {"sku": sku, "note": "fi\u200bne"}, message="Tell the number of orders"
    )
    return {"sku": sku, "orders": 148}


_PERIOD = Form(
    key="period",
    title="Which orders to count",
    schema={
        "type": "object",
        "required": ["year", "depot"],
        "properties": {
            "year": {"type": "integer", "title": "Year", "minimum": 2020},
            "depot": {"enum": ["Vantaa", "Oulu"], "title": "Depot"},
            "paid": {"type": "boolean", "title": "Paid", "description": "Only those that are paid"},
            "remark": {"type": "string", "title": "Remark"},
        },
    },
)


@tool(name="orders_search", effect="reads")
def filled_search(sku: str, context: ToolContext) -> dict[str, object]:
    """Count the orders of a product in a period."""
    period = context.require_input("period", message="There are many orders.")
    return {"orders": 148, "sku": sku, "period": period}


@tool(name="orders_search", effect="writes", on_unknown="park")
async def parking_search(sku: str, context: ToolContext) -> dict[str, object]:
    """Count the orders of a product; the first attempt goes on until its process dies."""
    if context.attempt == 1:
        await asyncio.Event().wait()
    return {"sku": sku, "orders": 148}


@external_tool(name="orders_search")
def outside_search(sku: str) -> None:
    """Have somebody count the orders of a product by hand."""


@external_tool(name="warehouse_stock")
def outside_stock(sku: str) -> None:
    """Have somebody count the units of a product by hand."""


async def _soon(seconds: float) -> None:
    await asyncio.sleep(seconds / 5)


agents = [
    # A later version of the built-in agent, with the same tools at a faster pace.
    Agent(id="assistant", version="fast", instructions=_INSTRUCTIONS, tools=demo_tools(_soon)),
    Agent(id="gated", instructions=_INSTRUCTIONS, tools=(gated_search, stock)),
    Agent(id="asking", instructions=_INSTRUCTIONS, tools=(asking_search, stock)),
    Agent(id="approving", instructions=_INSTRUCTIONS, tools=(approved_search, stock)),
    Agent(id="filling", instructions=_INSTRUCTIONS, tools=(filled_search, stock), forms=(_PERIOD,)),
    Agent(id="parking", instructions=_INSTRUCTIONS, tools=(parking_search, stock)),
    Agent(id="outside", instructions=_INSTRUCTIONS, tools=(outside_search, stock)),
    Agent(
        id="together",
        instructions=_INSTRUCTIONS,
        tools=(approved_search, outside_stock),
        open_waits="together",
    ),
    Agent(
        id="one-by-one",
        instructions=_INSTRUCTIONS,
        tools=(gated_search, stock),
        limits=Limits(parallel_tools=1),
    ),
    Agent(
        id="choosing",
        instructions=_INSTRUCTIONS,
        tools=(stock,),
        model="demo-small",
        changes=Changeable(models=("demo-small", "demo-large", "demo-wide")),
    ),
    Agent(id="shaky", instructions=_INSTRUCTIONS, tools=(shaky_search, stock)),
    Agent(
        id="limited",
        instructions=_INSTRUCTIONS,
        tools=(stock, shaky_search),
        limits=Limits(max_tool_calls=1, is_blocking=True),
    ),
    Agent(
        id="bounded",
        instructions=_INSTRUCTIONS,
        tools=(stock,),
        limits=Limits(max_total_tokens=1),
    ),
]
