"""What a process dies in the middle of: seven stories, and one of everything else there is.

A story is told by a person over HTTP who begins it anew after each death, as any client may: every
command can be repeated, and nothing is remembered between two lives. The same stories are told to
a process inside the test and, by `TURNKEEPER_AGENTS=tests.support.crash_scenarios:agents`, to real
ones.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from app.agents import Agent, WaitPolicy
from app.ports import ToolContext
from app.tools import external_tool, tool
from tests.support.story import (
    FOLDER_VARIABLE,
    QUOTA,
    Effect,
    Ledger,
    clerk,
)

Turn: TypeAlias = dict[str, Any]
Round: TypeAlias = Mapping[str, object]

SCENARIO_VARIABLE = "STORY_SCENARIO"
_AT_WORK = {"READY", "RUNNING"}
_LOOK_SECONDS = 0.02
LONG_TEXT = "Nothing of this may be lost or said twice: ünïcödé. " * 110
"""More than two batches of text, so that it is stored in pieces."""


def _calling(*calls: Mapping[str, str]) -> Round:
    return {"text": "I do it.", "chunks": 2, "calls": list(calls), "argument_chunks": 2}


def _call(call_id: str, name: str, arguments: str) -> Mapping[str, str]:
    return {"id": call_id, "name": name, "arguments": arguments}


_PAY = _call("P", "pay", '{"amount": 7}')
_LOOK_UP = _call("A", "look_up", '{"what": "a"}')
_BOOK = _call("B", "book", '{"what": "b"}')
_DONE: Round = {"text": "All is done.", "chunks": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who wants one conversation to come to its end, and an executor outside."""

    http: httpx.AsyncClient
    scenario: "Scenario"
    conversation: str
    ledger: Ledger

    async def begins(self) -> Turn:
        """Say the first message, under its id."""
        said = {"content": "Do it.", "messageId": "m1", "agentId": self.scenario.agent_id}
        answer = await self.http.post(f"/conversations/{self.conversation}/messages", json=said)
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    async def rests(self, turn: Turn, *, but_for: Callable[[Turn], bool] | None = None) -> Turn:
        """The turn once it waits or has ended, or once `but_for` is true of it."""
        while True:
            now = (await self.http.get(f"/turns/{turn['turnId']}")).raise_for_status().json()
            if now["status"] not in _AT_WORK or (but_for is not None and but_for(now)):
                return dict(now)
            await asyncio.sleep(_LOOK_SECONDS)

    async def commands(self, turn: Turn, body: Mapping[str, object], **headers: str) -> None:
        """What comes of it is seen from the turn; only our own errors are errors here."""
        answer = await self.http.post(f"/turns/{turn['turnId']}/resume", json=body, headers=headers)
        assert answer.status_code in (202, 409), answer.text

    async def sees_it_through(self) -> Turn:
        """Begin, answer whatever waits, until the turn has ended."""
        turn = await self.rests(await self.begins())
        while turn["actions"]:
            await _ANSWERS[turn["status"]](self, turn)
            turn = await self.rests(turn)
        return turn

    async def approves(self, turn: Turn) -> None:
        """With a key, waiting for what comes of it."""
        call_id = turn["suspension"]["correlationId"]
        body = {"command": "APPROVE_TOOL", "callId": call_id}
        key = f"{turn['turnId']}-{call_id}"
        await self.commands(turn, body, **{"Idempotency-Key": key, "Prefer": "wait=5"})

    async def carries_out(self, turn: Turn) -> None:
        """Take the open call, do it once under its key, send the result."""
        claim = {"executor": "outside", "limit": 100, "leaseSeconds": 1}
        (await self.http.post("/external-calls/claim", json=claim)).raise_for_status()
        call_id = turn["suspension"]["correlationId"]
        key = f"{turn['turnId']}:{call_id}"
        if key not in {effect.idempotency_key for effect in self.ledger.effects()}:
            self.ledger.enter(
                Effect(
                    tool="scan",
                    turn_id=turn["turnId"],
                    call_id=call_id,
                    idempotency_key=key,
                    attempt=1,
                    is_replay=False,
                )
            )
        await self.delivers(turn, call_id)

    async def delivers(self, turn: Turn, call_id: str) -> None:
        await self.commands(
            turn, {"command": "TOOL_RESULT", "callId": call_id, "output": "scanned"}
        )

    async def retries(self, turn: Turn) -> None:
        await self.commands(turn, {"command": "RETRY_MODEL", "failureId": turn["failureId"]})


_ANSWERS: Mapping[str, Callable[[Person, Turn], Awaitable[None]]] = {
    "WAITING_FOR_APPROVAL": Person.approves,
    "WAITING_FOR_TOOL": Person.carries_out,
    "WAITING_FOR_MODEL": Person.retries,
}


async def _told_twice(person: Person) -> Turn:
    """A double click on the first message, and then as always."""
    await person.begins()
    return await person.sees_it_through()


async def _everything_else(person: Person) -> Turn:
    """An outage, a wait that nobody answers in time, a cancellation; conversations made, undone."""
    gone = f"/conversations/{person.conversation}_gone"
    (await person.http.put(gone, json={})).raise_for_status()
    await person.http.delete(gone)

    def writes_at_length(now: Turn) -> bool:
        return bool(now["counters"]["modelSuccesses"]) and now["cursor"] == "INVOKE_MODEL"

    turn = await person.rests(await person.begins(), but_for=writes_at_length)
    while turn["actions"] and not writes_at_length(turn):
        if turn["status"] == "WAITING_FOR_MODEL":
            await person.retries(turn)
        await asyncio.sleep(_LOOK_SECONDS)  # the wait for the tool ends by itself
        turn = await person.rests(turn, but_for=writes_at_length)
    await person.delivers(turn, "S")
    await person.http.post(f"/turns/{turn['turnId']}/cancel")
    turn = await person.rests(turn)
    path = f"/conversations/{person.conversation}"
    (await person.http.post(f"{path}/revert", json={"messageId": "m1"})).raise_for_status()
    (await person.http.post(f"{path}/unrevert")).raise_for_status()
    return turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A story, and the one end that it has wherever a process dies."""

    name: str
    rounds: Sequence[Round]
    answer: str | None
    """The last one; `None`: none is asserted."""
    tools: Sequence[str] = ()
    """Whose calls have results, in declared order."""
    told: Callable[[Person], Coroutine[Any, Any, Turn]] = Person.sees_it_through
    dies_first: Sequence[tuple[str, int]] = ()
    """Points and passages at which earlier lives have ended already."""
    status: str = "COMPLETED"
    is_handed_over: bool = False
    """Whether the process that takes the person's commands drives the turn by itself."""

    @property
    def agent_id(self) -> str:
        return self.name.replace(" ", "_")

    @property
    def model(self) -> str:
        """A model of its own, so that stories can be told side by side."""
        return f"of_{self.agent_id}"


PLAIN = Scenario(
    name="plain",
    rounds=[{"text": LONG_TEXT, "chunks": 4, "delay_ms": 1}],
    answer=LONG_TEXT,
)
THREE_TOOLS = Scenario(
    name="three parallel tools",
    rounds=[_calling(_LOOK_UP, _BOOK, _PAY), _DONE],
    answer="All is done.",
    tools=("look_up", "book", "pay"),
)
WRITING = Scenario(
    name="writing tool", rounds=[_calling(_PAY), _DONE], answer="All is done.", tools=("pay",)
)
APPROVAL = Scenario(
    name="approval",
    rounds=[_calling(_call("G", "gated_pay", '{"amount": 7}')), _DONE],
    answer="All is done.",
    tools=("gated_pay",),
    told=_told_twice,
)
EXTERNAL = Scenario(
    name="external tool",
    rounds=[_calling(_call("S", "scan", '{"parcel": "p"}')), _DONE],
    answer="All is done.",
    tools=("scan",),
)
RESUMED = Scenario(
    name="resume of a resume",
    rounds=[_calling(_LOOK_UP, _BOOK, _PAY), _DONE],
    answer="All is done.",
    tools=("look_up", "book", "pay"),
    dies_first=(("tool.writes.after", 1),),
)
HANDED_OVER = Scenario(
    name="handed over",
    rounds=[{**_calling(_LOOK_UP, _BOOK, _PAY), "faults": [QUOTA]}, _DONE],
    answer="All is done.",
    tools=("look_up", "book", "pay"),
    is_handed_over=True,
)
EVERYTHING_ELSE = Scenario(
    name="everything else",
    rounds=[
        {**_calling(_call("S", "scan_soon", '{"parcel": "p"}')), "faults": [QUOTA]},
        {"text": "word " * 60, "chunks": 60, "delay_ms": 50},
    ],
    answer=None,
    tools=("scan_soon",),
    told=_everything_else,
    status="CANCELLED",
)
SEVEN = (PLAIN, THREE_TOOLS, WRITING, APPROVAL, EXTERNAL, RESUMED, HANDED_OVER)
SCENARIOS = (*SEVEN, EVERYTHING_ELSE)


def _tools(ledger: Ledger) -> Sequence[Any]:
    @tool(needs_approval=True)
    async def gated_pay(amount: int, call: ToolContext) -> str:
        """Pay an amount when that is approved."""
        ledger.note("gated_pay", call)
        return f"paid {amount}"

    @external_tool
    def scan(parcel: str) -> None:
        """Scan a parcel."""

    @external_tool(wait=WaitPolicy(timeout=timedelta(milliseconds=100), on_expiry="answer_expired"))
    def scan_soon(parcel: str) -> None:
        """Scan a parcel at once or not at all."""

    return (gated_pay, scan, scan_soon)


def agents_of(ledger: Ledger) -> Sequence[Agent]:
    """The clerk with more tools, once for every scenario."""
    base = clerk(ledger)
    tools = (*base.tools, *_tools(ledger))
    return [replace(base, id=s.agent_id, model=s.model, tools=tools) for s in SCENARIOS]


def agents() -> Sequence[Agent]:
    """For `TURNKEEPER_AGENTS`, in a process of its own; those of one story alone."""
    every = agents_of(Ledger(Path(os.environ[FOLDER_VARIABLE])))
    return [agent for agent in every if agent.id == os.environ[SCENARIO_VARIABLE]]
