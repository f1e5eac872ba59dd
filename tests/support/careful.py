"""Agents with a tool for every rule of lost calls, for processes that are killed in their midst.

Every tool but the quick ones stays where it is in its first attempt until its process dies, and
comes to its end in a later one. `turns` has one turn for each thing there is to see; each has an
agent and a model of its own, which go by the turn's name.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.agents import Agent
from app.ports import Tool
from app.tools import Done, NotDone, ToolContext, tool
from app.turn.agent import Limits
from tests.support.story import FOLDER_VARIABLE, Ledger

SLOWLY = {"text": "Once upon a time. " * 20, "chunks": 120, "delay_ms": 100}
DONE = {"text": "All done."}


def called(*names: str) -> dict[str, object]:
    """A round of a script in which the model asks for these tools, as calls `A`, `B` and so on."""
    calls = [
        {"id": chr(ord("A") + n), "name": name, "arguments": "{}"} for n, name in enumerate(names)
    ]
    return {"calls": calls}


TURNS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "57_answer_not_stored": [SLOWLY | called("quick"), DONE],
    "58_never_began": [called("wire", "quick"), DONE],
    "59_report": [called("pay"), DONE],
    "60_rerun_idempotent": [called("book"), DONE],
    "61_interrupt": [called("mail", "look_up"), DONE],
    "62_rerun": [called("look_up"), DONE],
    "63_it_is_done": [called("wire"), DONE],
    "63_it_is_not_done": [called("wire"), DONE],
    "63_it_is_given_up": [called("wire"), DONE],
    "64_batch": [called("quick", "mail", "look_up"), DONE],
    "65_bar": [called("barring", "quick"), SLOWLY],
    "69_undeclared": [called("undeclared"), DONE],
    "71_twice": [called("pay", "look_up_twice"), DONE],
    "72_old_error": [called("failing", "pay"), DONE],
    "probe_done": [called("charge"), DONE],
    "probe_not_done": [called("charge_in_vain"), DONE],
    "probe_blind": [called("charge_blindly"), DONE],
    "never_replay": [called("look_up", "book"), DONE],
    "a_strict_turn": [called("look_up"), DONE],
}
"""The scripts of the models, by the name of the turn."""
ONE_BY_ONE = {"58_never_began"}
BEGUN = 24
"""Tools that have been entered once all turns stand where their process is to die."""


def noted_in(ledger: Ledger) -> Callable[[str], Coroutine[Any, Any, Done | NotDone | None]]:
    """A probe that knows what the ledger says."""

    async def is_noted(key: str) -> Done | NotDone | None:
        noted = [each for each in ledger.effects() if each.idempotency_key == key]
        return Done({"noted": len(noted)}) if noted else NotDone("nothing is noted")

    return is_noted


async def is_not(key: str) -> Done | NotDone | None:
    """A probe that knows that nothing was done."""
    raise NotDone(key)


async def nobody_knows(key: str) -> Done | NotDone | None:
    """A probe that cannot say anything."""
    raise ConnectionError(key)


def hanging(ledger: Ledger) -> list[Tool]:
    """Those that a death finds at work."""

    async def work(call: ToolContext, *, attempts: int = 1) -> str:
        ledger.note(call.tool_name, call)
        if call.attempt <= attempts:
            await asyncio.Event().wait()
        return f"attempt {call.attempt}"

    @tool
    async def undeclared(call: ToolContext) -> str:
        return await work(call)

    @tool(effect="reads")
    async def look_up_twice(call: ToolContext) -> str:
        return await work(call, attempts=2)

    async def common(call: ToolContext) -> str:
        """Do something that takes its time."""
        return await work(call)

    return [
        undeclared,
        look_up_twice,
        tool(effect="writes", name="pay")(common),
        tool(effect="idempotent", name="book")(common),
        tool(effect="reads", name="look_up")(common),
        tool(effect="writes", name="mail", on_unknown="interrupt")(common),
        tool(effect="writes", name="wire", on_unknown="park")(common),
        tool(effect="writes", name="charge", probe=noted_in(ledger))(common),
        tool(effect="writes", name="charge_in_vain", probe=is_not)(common),
        tool(effect="writes", name="charge_blindly", probe=nobody_knows)(common),
    ]


def quick_ones(ledger: Ledger) -> list[Tool]:
    """Those that come to their end at once."""

    @tool(effect="writes")
    async def quick(call: ToolContext) -> str:
        ledger.note("quick", call)
        return "done at once"

    @tool(effect="reads")
    async def failing(call: ToolContext) -> str:
        ledger.note("failing", call)
        raise RuntimeError("the archive is closed")

    @tool(effect="reads", block_following=True)
    async def barring(call: ToolContext) -> str:
        ledger.note("barring", call)
        raise RuntimeError("no such order")

    return [quick, failing, barring]


def careful(ledger: Ledger, turn: str) -> Agent:
    """The agent of one turn."""
    agent = Agent(
        id=turn,
        instructions="Be careful.",
        model=turn,
        tools=(*hanging(ledger), *quick_ones(ledger)),
        never_replay=turn == "never_replay",
    )
    one_by_one = Limits(parallel_tools=1)
    return replace(agent, limits=one_by_one) if turn in ONE_BY_ONE else agent


def agents() -> tuple[Agent, ...]:
    """For `TURNKEEPER_AGENTS`, in a process of its own."""
    ledger = Ledger(Path(os.environ[FOLDER_VARIABLE]))
    return tuple(careful(ledger, turn) for turn in TURNS)
