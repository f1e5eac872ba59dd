"""The agent of the stories, and the ledger its tools write outside the service's database.

The same module serves tests in one process and, named by `TURNKEEPER_AGENTS`, real processes:
`tests.support.story:agents` keeps its ledger in the folder of `STORY_FOLDER`.
"""

import asyncio
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson
from pydantic import BaseModel

from app.agents import Agent
from app.ports import ToolContext
from app.tools import tool
from app.turn.agent import Limits

FOLDER_VARIABLE = "STORY_FOLDER"
MODEL = "story"

QUOTA = {
    "times": 1,
    "status": 429,
    "body": {
        "error": {
            "message": "You exceeded your current quota.",
            "type": "insufficient_quota",
            "code": "insufficient_quota",
        }
    },
}
THREE_CALLS = {
    "text": "I look it up.",
    "calls": [
        {"id": "A", "name": "look_up", "arguments": '{"what": "a"}'},
        {"id": "B", "name": "book", "arguments": '{"what": "b"}'},
        {"id": "C", "name": "pay", "arguments": '{"amount": 3}'},
    ],
}
THREE_TOOLS_AND_AN_OUTAGE = [THREE_CALLS, {"text": "All done.", "faults": [QUOTA]}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A tool was entered; this is all that is known of it outside the service."""

    tool: str
    turn_id: str
    call_id: str
    idempotency_key: str
    attempt: int
    is_replay: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the tools did, one line each, surviving every process."""

    folder: Path

    def effects(self, turn_id: str | None = None) -> list[Effect]:
        """In order; of one turn or of all."""
        lines = self._file.read_bytes().splitlines() if self._file.exists() else []
        found = [Effect(**orjson.loads(line)) for line in lines]
        return [effect for effect in found if turn_id in (None, effect.turn_id)]

    def tools(self, turn_id: str | None = None) -> list[str]:
        """The names of the tools that were entered, sorted."""
        return sorted(effect.tool for effect in self.effects(turn_id))

    def note(self, tool_name: str, call: ToolContext) -> None:
        effect = Effect(
            tool=tool_name,
            turn_id=call.turn_id,
            call_id=call.call_id,
            idempotency_key=call.idempotency_key,
            attempt=call.attempt,
            is_replay=call.is_replay,
        )
        self.enter(effect)

    def enter(self, effect: Effect) -> None:
        with self._file.open("ab") as file:
            file.write(orjson.dumps(asdict(effect)) + b"\n")

    def open_gate(self) -> None:
        """Let the tools go on that wait behind the gate, from now on."""
        (self.folder / "gate").touch()

    def shut_gate(self) -> None:
        """Let them wait again."""
        (self.folder / "gate").unlink(missing_ok=True)

    async def passed_gate(self) -> None:
        """Wait, in whatever process, until the gate is open."""
        while not (self.folder / "gate").exists():  # noqa: ASYNC110 - it is another process's
            await asyncio.sleep(0.01)

    @property
    def _file(self) -> Path:
        return self.folder / "ledger"


def clerk(ledger: Ledger, *, parallel_tools: int = 8) -> Agent:
    """An agent with a tool of every effect, and one of each that waits behind the gate."""

    @tool(effect="reads")
    async def look_up(what: str, call: ToolContext) -> str:
        """Look something up."""
        ledger.note("look_up", call)
        return f"found {what}"

    @tool(effect="idempotent")
    async def book(what: str, call: ToolContext) -> str:
        """Book something."""
        ledger.note("book", call)
        return f"booked {what}"

    @tool(effect="writes")
    async def pay(amount: int, call: ToolContext) -> str:
        """Pay an amount."""
        ledger.note("pay", call)
        return f"paid {amount}"

    @tool(effect="writes")
    async def pay_slowly(amount: int, call: ToolContext) -> str:
        """Pay an amount; the bank takes its time."""
        ledger.note("pay_slowly", call)
        await ledger.passed_gate()
        return f"paid {amount} at last"

    @tool(effect="reads")
    async def look_up_slowly(what: str, call: ToolContext) -> str:
        """Look something up in an archive."""
        ledger.note("look_up_slowly", call)
        await ledger.passed_gate()
        return f"found {what} at last"

    return Agent(
        id="clerk",
        instructions="Be brief.",
        model=MODEL,
        tools=(look_up, book, pay, pay_slowly, look_up_slowly),
        limits=Limits(parallel_tools=parallel_tools),
    )


class Total(BaseModel):
    """What the counting clerk answers."""

    total: int


def counting_clerk(ledger: Ledger) -> Agent:
    """The same clerk, whose final answer is a total."""
    return replace(clerk(ledger), id="counting_clerk", output=Total)


def agents() -> tuple[Agent, ...]:
    """For `TURNKEEPER_AGENTS`, in a process of its own."""
    return (clerk(Ledger(Path(os.environ[FOLDER_VARIABLE]))),)
