"""What was reported of turns elsewhere that ended wrongly, never, or with a wrong account.

The numbers are those of the public reports that these stories were made from.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.agents import Agent, Limits, RetryPolicy
from app.ports import StoredTurn, ToolContext
from app.ports.fault_points import watched_by
from app.services.deps import Services
from app.services.drafts import Draft
from app.services.messages import post_message
from app.services.turns import wait_until_at_rest
from app.tools import Ask, tool
from app.turn.ids import AgentId, ConversationId, MessageId
from app.turn.transcript import TextPart
from tests.e2e.conftest import Stage
from tests.e2e.test_interruptions import LATER, began
from tests.http.rig import assert_problem
from tests.support.bench import CALLER
from tests.support.deaths import Fate, Fault, Stand, let_claims_run_out, life, lives
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.service import Service, SignedIn, running_service
from tests.support.sse_reader import TurnReader
from tests.support.story import MODEL, QUOTA, Ledger, clerk

DONE: dict[str, object] = {"text": "Done."}
COSTS: dict[str, object] = {"usage": {"prompt_tokens": 100, "completion_tokens": 10}}
SLOW_TEXT: dict[str, object] = {"text": "word " * 1_000, "chunks": 1_000, "delay_ms": 50}


def calling(call_id: str, name: str, arguments: str = "{}") -> dict[str, object]:
    """A round that asks for one tool."""
    return {"calls": [{"id": call_id, "name": name, "arguments": arguments}]}


# --- 058: cancelled in every state ----------------------------------------------------------------


def asking_clerk(ledger: Ledger) -> Agent:
    """The clerk, with a tool that is tried again tomorrow and one that asks the user."""

    @tool(effect="reads", on_error="retry_then_model", retry=LATER)
    def fetch() -> str:
        """Fetch it."""
        raise OSError("no route")

    @tool(effect="writes")
    def ask(call: ToolContext) -> str:
        """Ask where to go."""
        ledger.note("ask", call)
        raise Ask("Where to?")

    whole = clerk(ledger)
    return replace(whole, tools=(*whole.tools, fetch, ask), retry=LATER)


Arrival = Callable[[Stage, Service, str], Awaitable[None]]


async def is_at_rest(_stage: Stage, service: Service, turn_id: str) -> None:
    await service.at_rest(turn_id)


async def is_writing(_stage: Stage, service: Service, turn_id: str) -> None:
    reader = TurnReader(service.client, turn_id)
    await reader.read(until=lambda event: event["type"] == "MODEL_TEXT")


async def is_in_a_tool(stage: Stage, _service: Service, _turn_id: str) -> None:
    await eventually(lambda: began(stage, "pay_slowly"))


async def is_paused(stage: Stage, service: Service, turn_id: str) -> None:
    await is_writing(stage, service, turn_id)
    await service.client.post(f"/turns/{turn_id}/pause")
    await service.at_rest(turn_id)


async def is_opened(_stage: Stage, _service: Service, _turn_id: str) -> None:
    """Nothing more: nobody takes it."""


STATES: dict[str, tuple[dict[str, object], Arrival, str]] = {
    "on hold": (DONE, is_opened, "READY"),
    "writing": (SLOW_TEXT, is_writing, "RUNNING"),
    "in a tool": (calling("A", "pay_slowly", '{"amount": 9}'), is_in_a_tool, "RUNNING"),
    "in the back-off of a model": (
        {"text": "", "faults": [{"status": 503, "times": 9}]},
        is_at_rest,
        "RETRY_SCHEDULED",
    ),
    "in the back-off of a tool": (calling("A", "fetch"), is_at_rest, "RETRY_SCHEDULED"),
    "waiting for its model": ({"text": "", "faults": [QUOTA]}, is_at_rest, "WAITING_FOR_MODEL"),
    "waiting for its user": (calling("A", "ask"), is_at_rest, "WAITING_FOR_USER"),
    "paused": (SLOW_TEXT, is_paused, "PAUSED"),
}


@pytest.mark.parametrize(("this_round", "arrives", "status"), STATES.values(), ids=STATES.keys())
async def test_scenario_058_a_turn_is_cancelled_within_two_seconds_whatever_it_does(
    stage: Stage, this_round: dict[str, object], arrives: Arrival, status: str
) -> None:
    stage.provider.script(MODEL, [this_round, DONE])
    agent = asking_clerk(stage.ledger)
    hold = arrives is is_opened
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        sent = await service.send("ses_1", "Go.", wait=0, agentId="clerk", hold=hold)
        turn_id = sent["turnId"]
        await arrives(stage, service, turn_id)
        before = await service.turn(turn_id)
        async with asyncio.timeout(2):
            first = await service.client.post(f"/turns/{turn_id}/cancel")
            again = await service.client.post(f"/turns/{turn_id}/cancel")
            stage.ledger.open_gate()
            ended = await service.at_rest(turn_id)
        once_more = await service.client.post(f"/turns/{turn_id}/cancel")

    assert (before["status"], ended["status"]) == (status, "CANCELLED")
    assert {first.status_code, again.status_code} <= {200, 202}
    assert (once_more.status_code, once_more.json()["version"]) == (200, ended["version"])
    (record,) = await check_everything(stage.dsn, stage.ledger)
    assert record.types.count("TURN_CANCELLED") == 1
    assert record.types.count("CANCELLATION_REQUESTED") <= 1


async def test_scenario_058_a_turn_that_no_worker_has_taken_is_cancelled_at_once(
    stage: Stage,
) -> None:
    agents = [clerk(stage.ledger)]
    async with running_service(
        stage.dsn, stage.settings, agents=agents, with_worker=False
    ) as service:
        sent = await service.send("ses_1", "Go.", wait=0, agentId="clerk")
        first = await service.client.post(f"/turns/{sent['turnId']}/cancel")
        again = await service.client.post(f"/turns/{sent['turnId']}/cancel")

    assert sent["status"] == "READY"
    assert (first.status_code, first.json()["status"]) == (200, "CANCELLED")
    assert again.json()["version"] == first.json()["version"]
    await check_everything(stage.dsn, stage.ledger)


# --- 059: the end of the work meets the cancellation ----------------------------------------------


@asynccontextmanager
async def held_before_its_end(stage: Stage) -> AsyncGenerator[tuple[Service, Stand]]:
    """A service that stands still just before a worker's commit of an answer."""
    stand = Stand("commit.answer.before")
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        with watched_by(stand.meets):
            try:
                yield service, stand
            finally:
                stand.may_go.set()


@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_scenario_059_of_the_last_commit_and_a_cancellation_the_first_one_stands(
    stage: Stage, *, cancelled_first: bool
) -> None:
    stage.provider.script(MODEL, [DONE | COSTS])
    async with held_before_its_end(stage) as (service, stand):
        sent = await service.send("ses_1", "Go.", wait=0, agentId="clerk")
        path = f"/turns/{sent['turnId']}/cancel"
        await stand.has_come.wait()
        if cancelled_first:
            answer = await service.client.post(path)
            stand.may_go.set()
            ended = await service.at_rest(sent["turnId"])
        else:
            stand.may_go.set()
            ended = await service.at_rest(sent["turnId"])
            answer = await service.client.post(path)

    if cancelled_first:
        assert (answer.status_code, ended["status"]) == (202, "CANCELLED")
    else:
        assert ended["status"] == "COMPLETED"
        assert_problem(answer, 409, "turn_terminal")
    assert (ended["usage"]["inputTokens"], ended["usage"]["outputTokens"]) == (100, 10)
    await check_everything(stage.dsn, stage.ledger)


# --- 097: runaway loops ---------------------------------------------------------------------------


async def test_scenario_097_empty_answers_for_ever_are_asked_for_three_times(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [{"text": ""} | COSTS])
    soon = timedelta(milliseconds=10)
    retry = RetryPolicy(max_retries=2, initial_delay=soon, max_delay=soon, jitter="none")
    agent = replace(clerk(stage.ledger), retry=retry)
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        sent = await service.send("ses_1", "Go.", wait=0, agentId="clerk")
        await eventually(lambda: has_status(service, sent["turnId"], "WAITING_FOR_MODEL"))
        waiting = await service.turn(sent["turnId"])

    assert (waiting["failureType"], waiting["actions"][0]["command"]) == (
        "UNAVAILABLE",
        "RETRY_MODEL",
    )
    assert len(stage.provider.requests(MODEL)) == 3
    assert (waiting["counters"]["modelFailures"], waiting["counters"]["retries"]) == (1, 0)
    assert (waiting["usage"]["inputTokens"], waiting["usage"]["outputTokens"]) == (300, 30)
    await check_everything(stage.dsn, stage.ledger)


async def has_status(service: SignedIn, turn_id: str, status: str) -> bool:
    return bool((await service.turn(turn_id))["status"] == status)


async def test_scenario_097_the_same_call_for_ever_ends_at_the_limit_of_iterations(
    stage: Stage,
) -> None:
    again: list[dict[str, object]] = [calling("A", "look_up", '{"what": "a"}') | COSTS] * 20
    stage.provider.script(MODEL, again)
    agent = replace(clerk(stage.ledger), limits=Limits(max_iterations=8))
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        turn = await service.send("ses_1", "Go.", agentId="clerk")
        after = await service.send("ses_1", "And now?", agentId="clerk")

    assert (turn["status"], turn["actions"]) == ("MAX_ITERATIONS_REACHED", [])
    assert len(stage.ledger.effects(turn["turnId"])) == turn["counters"]["modelAttempts"] == 8
    assert (turn["usage"]["inputTokens"], turn["usage"]["outputTokens"]) == (800, 80)
    assert after["turnId"] != turn["turnId"]
    await check_everything(stage.dsn, stage.ledger)


# --- 104 and 122: counted once over deaths and retries --------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [Fault.DEATH_BEFORE_COMMIT, Fault.DEATH_AFTER_COMMIT],
    ids=lambda fault: fault.name.lower(),
)
async def test_scenario_104_what_was_spent_before_a_death_is_counted_once(
    stage: Stage, fault: Fault
) -> None:
    look_ups = [calling(f"c{n}", "look_up", '{"what": "a"}') for n in range(3)]
    stage.provider.script(MODEL, [each | COSTS for each in (*look_ups, DONE)])
    agents, n, ended = [clerk(stage.ledger)], 0, list[StoredTurn]()
    fate = Fate(fault, at=frozenset())
    while fate.struck >= fate.at:
        n += 1
        fate = Fate(fault, at=frozenset({n}))
        ended.append(await lives(stage.settings, stage.dsn, agents, fate, sending(f"ses_{n}")))
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        turns = [await service.turn(each.turn.identity.turn_id) for each in ended]
        answer = await service.client.get("/usage", params=since_ever())

    assert n > 8  # the message with its begin, an answer and a result for each call, and the end
    assert {turn["status"] for turn in turns} == {"COMPLETED"}
    assert {spent(turn) for turn in turns} == {(400, 40)}
    attempts = [turn["counters"]["modelAttempts"] for turn in turns]
    assert set(attempts) == {4, 5}, "a round whose answer was lost is an attempt of unknown cost"
    totals = answer.json()["total"]
    assert (totals["inputTokens"], totals["outputTokens"]) == (400 * n, 40 * n)
    assert totals["modelAttempts"] == sum(attempts)
    await check_everything(stage.dsn, stage.ledger)


def spent(turn: dict[str, Any]) -> tuple[int, int]:
    return turn["usage"]["inputTokens"], turn["usage"]["outputTokens"]


def since_ever() -> dict[str, str]:
    return {"from": "2000-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}


def draft(conversation: str) -> Draft:
    return Draft(
        conversation_id=ConversationId(conversation),
        content=(TextPart(text="Go."),),
        message_id=MessageId("m1"),
        agent_id=AgentId("clerk"),
    )


def sending(conversation: str) -> Callable[[Services], Coroutine[Any, Any, StoredTurn]]:
    """A client that sends one message, and again whenever it knows no answer."""

    async def client(services: Services) -> StoredTurn:
        posted = await post_message(services, CALLER, draft(conversation))
        return await wait_until_at_rest(
            services, CALLER, posted.stored, seconds=15, stopping=asyncio.Event()
        )

    return client


async def test_scenario_122_the_limit_of_iterations_counts_good_rounds_over_every_resume(
    stage: Stage,
) -> None:
    down = {"faults": [{"status": 503, "times": 5}]}
    rounds = [calling(f"c{n}", "look_up", '{"what": "a"}') for n in range(3)]
    stage.provider.script(MODEL, [rounds[0], rounds[1] | down, rounds[2] | down, DONE])
    agents = [replace(clerk(stage.ledger), limits=Limits(max_iterations=3))]
    fate = Fate(Fault.DEATH_AFTER_COMMIT, at=frozenset({3}))
    async with life(stage.settings, stage.dsn, agents, fate) as services:
        stored = (await post_message(services, CALLER, draft("ses_1"))).stored
        await fate.died.wait()
    await let_claims_run_out(stage.dsn)
    resumes = 0
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        turn = await service.at_rest(stored.turn.identity.turn_id)
        while turn["status"] == "WAITING_FOR_MODEL":
            turn = (await service.resume(turn["turnId"], {"failureId": turn["failureId"]})).json()
            resumes += 1

    assert (turn["status"], resumes) == ("MAX_ITERATIONS_REACHED", 10)
    counters = turn["counters"]
    assert (counters["modelSuccesses"], counters["modelFailures"]) == (3, 10)
    assert turn["actions"] == []
    (record,) = await check_everything(stage.dsn, stage.ledger)
    assert record.types[-1] == "MAX_ITERATIONS_REACHED"
