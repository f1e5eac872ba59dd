"""Every pair of commands at one instant on one turn: one order of the two is what happened.

Two replicas without workers are asked at once. What each answers, and what is stored then, must be
what the two commands come to one behind the other, in this order or in that.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeAlias

import httpx
import pytest

from app.agents import Agent, RetryPolicy
from app.entrypoints import wiring
from app.tools import Ask, ToolContext, external_tool, request_user_input, tool
from tests.e2e.conftest import Stage
from tests.support.crash_matrix import in_process
from tests.support.deaths import working
from tests.support.oracles import (
    Records,
    check_audit,
    check_events,
    check_fold,
    check_history,
    check_one_active_turn,
    check_records,
    records,
)
from tests.support.pairs import STATES, Command, State, Turn, give
from tests.support.postgres import query
from tests.support.sizes import size
from tests.support.story import Ledger, clerk

REPEATS = size(20, soak=500)
AT_ONCE = 10
PAIRS_AT_ONCE = max(1, 1_000 // (REPEATS + 2))
"""Turns that are held at work are held all at once, each by its tool."""
CLEAR = {200, 202, 404, 409}
AN_HOUR = timedelta(hours=1)
LATER = RetryPolicy(max_retries=1, initial_delay=AN_HOUR, max_delay=AN_HOUR, jitter="none")
Answer: TypeAlias = tuple[int, str]
"""A status and, of a refusal, its code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What two commands have come to: how they were answered, and what is stored."""

    answers: tuple[Answer, Answer]
    events: tuple[str, ...]
    """Of the turn, behind those that it had."""
    status: str
    turns: int
    """In the conversation."""


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.agent_id)
async def test_two_commands_at_once_come_to_what_they_come_to_in_one_order(
    stage: Stage, state: State
) -> None:
    for begin in range(0, len(state.pairs), PAIRS_AT_ONCE):
        await race(stage, state, state.pairs[begin : begin + PAIRS_AT_ONCE], f"ses_{begin}")


async def race(
    stage: Stage, state: State, pairs: Sequence[tuple[str, str]], conversations: str
) -> None:
    """Each pair, one behind the other in both orders, then again and again at once."""
    turns = await arranged(stage, state, len(pairs) * (REPEATS + 2), conversations)
    async with two_replicas(stage) as (one, two), records(stage.dsn) as found:
        for names in pairs:
            first, second = (state.commands[name] for name in names)
            possible = {
                await in_order(one, found, turns.pop(), first, second, is_swapped=False),
                await in_order(one, found, turns.pop(), first, second, is_swapped=True),
            }
            for begin in range(0, REPEATS, AT_ONCE):
                batch = [turns.pop() for _ in range(min(AT_ONCE, REPEATS - begin))]
                raced = await asyncio.gather(
                    *(
                        at_once(*((one, two) if n % 2 else (two, one)), found, turn, first, second)
                        for n, turn in enumerate(batch)
                    )
                )
                assert set(raced) <= possible, names
        await check_one_active_turn(found)
    await query(stage.dsn, "UPDATE turns SET runnable_at = NULL")  # the next worker's are others


async def in_order(
    http: httpx.AsyncClient,
    found: Records,
    turn: Turn,
    first: Command,
    second: Command,
    *,
    is_swapped: bool,
) -> Outcome:
    """The one behind the other."""
    said = [(first, "a"), (second, "b")]
    answers: dict[str, httpx.Response] = {}
    for command, own in reversed(said) if is_swapped else said:
        answers[own] = await give(http, command(turn, own))
    return await outcome(found, turn, answers["a"], answers["b"])


async def at_once(
    one: httpx.AsyncClient,
    two: httpx.AsyncClient,
    found: Records,
    turn: Turn,
    first: Command,
    second: Command,
) -> Outcome:
    both = await asyncio.gather(give(one, first(turn, "a")), give(two, second(turn, "b")))
    return await outcome(found, turn, *both)


async def outcome(found: Records, turn: Turn, a: httpx.Response, b: httpx.Response) -> Outcome:
    """What is stored, which every oracle has looked at."""
    record = await found.of(turn["turnId"])
    check_fold(record)
    check_events(record.journal, record.turn)
    check_history(record)
    check_records(record)
    check_audit(record)
    return Outcome(
        answers=(answered(a), answered(b)),
        events=tuple(record.types[turn["version"] :]),
        status=record.turn.status,
        turns=1 + len(await found.next_turn_ids(record.turn)),
    )


def answered(answer: httpx.Response) -> Answer:
    assert answer.status_code in CLEAR, answer.text
    return answer.status_code, answer.json().get("code", "")


# --- Arranging -----------------------------------------------------------------------------------


async def arranged(stage: Stage, state: State, count: int, conversations: str) -> list[Turn]:
    """So many turns in the state, each in a conversation of its own, and no worker any more."""
    stage.provider.script(state.agent_id, [state.first, {"text": "Done."}], strict=False)
    concurrency = count if state.is_held else AT_ONCE
    free = asyncio.Semaphore(AT_ONCE)
    async with (
        service(stage, concurrency=concurrency) as runtime,
        in_process(runtime) as http,
        working(runtime),
    ):
        bringing = (brought(http, state, f"{conversations}_{n}", free) for n in range(count))
        turns = await asyncio.gather(*bringing)
    if state.is_held:
        await query(stage.dsn, "UPDATE turns SET claimed_until = now() + interval '1 hour'")
    return turns


async def brought(
    http: httpx.AsyncClient, state: State, conversation: str, free: asyncio.Semaphore
) -> Turn:
    async with free:
        said = {"content": "Go.", "messageId": "m1", "agentId": state.agent_id}
        path = f"/conversations/{conversation}"
        begun = await http.post(f"{path}/messages", json={**said, **(state.begins or {})})
        turn_id = begun.json()["turnId"]
        for command in state.then:
            await rests(http, turn_id, state)
            await give(http, command({"turnId": turn_id, "conversationId": conversation}, "c"))
        return await rests(http, turn_id, state, wanted=state.status)


async def rests(
    http: httpx.AsyncClient, turn_id: str, state: State, *, wanted: str | None = None
) -> Turn:
    """The turn once it is no worker's business any more, or in the middle of its tool."""
    while True:
        turn: Turn = (await http.get(f"/turns/{turn_id}")).json()
        is_there = bool(turn["counters"]["toolCalls"]) if state.is_held else is_quiet(turn, state)
        if is_there:
            assert wanted in (None, turn["status"]), turn
            return turn
        await asyncio.sleep(0.01)


def is_quiet(turn: Turn, state: State) -> bool:
    return turn["status"] not in ("READY", "RUNNING") or bool(state.begins)


@asynccontextmanager
async def two_replicas(
    stage: Stage,
) -> AsyncGenerator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    async with AsyncExitStack() as stack:
        runtimes = [await stack.enter_async_context(service(stage)) for _ in range(2)]
        one, two = [await stack.enter_async_context(in_process(each)) for each in runtimes]
        yield one, two


@asynccontextmanager
async def service(stage: Stage, *, concurrency: int = 1) -> AsyncGenerator[wiring.Runtime]:
    settings = stage.settings.model_copy(update={"worker_concurrency": concurrency})
    async with wiring.build(
        settings, stage.dsn, stopping=asyncio.Event(), agents=agents(stage.ledger)
    ) as runtime:
        yield runtime


def agents(ledger: Ledger) -> Sequence[Agent]:
    """The clerk with more tools, once for every state."""

    @tool(needs_approval=True)
    async def gated_pay(amount: int, call: ToolContext) -> str:
        """Pay an amount when that is approved."""
        ledger.note("gated_pay", call)
        return f"paid {amount}"

    @tool(effect="reads")
    async def ask() -> str:
        """Ask where to go."""
        raise Ask("Where to?")

    @external_tool
    def scan(parcel: str) -> None:
        """Scan a parcel."""

    base = clerk(ledger)
    tools = (*base.tools, gated_pay, ask, scan, request_user_input)
    retry = {"retry": LATER, "paused": LATER}
    return [
        replace(
            base,
            id=state.agent_id,
            model=state.agent_id,
            tools=tools,
            retry=retry.get(state.agent_id, RetryPolicy()),
        )
        for state in STATES
    ]
