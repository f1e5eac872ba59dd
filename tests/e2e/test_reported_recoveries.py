"""What was reported of recoveries elsewhere: work that is lost, done twice, or never taken up.

The numbers are those of the public reports that these stories were made from.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.agents import Agent
from app.services.messages import post_message
from app.settings import ProviderSettings
from app.tools import external_tool
from tests.e2e.conftest import Stage
from tests.e2e.test_reported_endings import calling, draft
from tests.http.rig import assert_problem
from tests.support.anthropic_provider import KEY, running_anthropic, text, thinking, tool_use
from tests.support.bench import CALLER
from tests.support.deaths import Doom, let_claims_run_out, living
from tests.support.deaths import working as alive
from tests.support.oracles import check_everything
from tests.support.orphans import dies_with, working
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.support.service import Service, running_service, settings_for_tests
from tests.support.sizes import size
from tests.support.story import MODEL, Effect, clerk

DONE: dict[str, object] = {"text": "Done."}
PAY_SLOWLY = calling("A", "pay_slowly", '{"amount": 3}')


def is_entered(stage: Stage, times: int = 1) -> bool:
    return len(stage.ledger.effects()) >= times


# --- 001 and 013: histories behind a death --------------------------------------------------------


async def test_scenario_001_a_conversation_is_usable_behind_a_worker_that_died_in_a_tool(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [PAY_SLOWLY, DONE, DONE])
    await service.send("c1", "Pay the bill.", agentId="clerk", wait=0)
    turn_id = await dies_with(service, stage.dsn, lambda: is_entered(stage))

    async with working(service):
        await service.at_rest(turn_id)
        answered = await service.send("c1", "What happened?")

    said = (await service.client.get("/conversations/c1/messages")).json()["items"]
    (result,) = (each for each in said if each["role"] == "tool")
    assert (result["callId"], result["outcome"]) == ("A", "unknown")
    assert "may" in result["content"]
    assert "not" in result["content"]
    assert stage.ledger.tools() == ["pay_slowly"]
    assert (answered["status"], answered["finalOutput"]) == ("COMPLETED", "Done.")
    assert {each["status"] for each in stage.provider.requests(MODEL)} == {200}


async def test_scenario_013_signed_thinking_comes_back_as_it_was_behind_a_death(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    this_round = [
        thinking("  「在庫」 \u2028 trailing \n ", "toolu_A"),
        tool_use("toolu_A", "look_up", what="a"),
    ]
    monkeypatch.setenv("CLAUDE_KEY", KEY)
    async with running_anthropic() as claude:
        claude.rounds = [this_round, [text("Found.")]]
        provider = ProviderSettings(
            kind="anthropic", base_url=claude.base_url, api_key_env="CLAUDE_KEY"
        )
        settings = stage.settings.model_copy(update={"providers": {"claude": provider}})
        agents = [replace(clerk(stage.ledger), model="claude/opus")]
        turn_id = await dead_at(replace(stage, settings=settings), agents, "commit.results.after")
        async with running_service(stage.dsn, settings, agents=agents) as service:
            ended = await service.at_rest(turn_id)

    assert (ended["status"], claude.refusals) == ("COMPLETED", [])
    assert claude.requests[-1]["messages"][1]["content"] == this_round
    assert [effect.call_id for effect in stage.ledger.effects()] == ["toolu_A"]


async def dead_at(
    stage: Stage,
    agents: Sequence[Agent],
    point: str,
    *,
    passage: int = 1,
    conversation: str = "c1",
) -> str:
    """A turn whose process died there; its id."""
    doom = Doom([(point, passage)])
    async with living(stage.settings, stage.dsn, agents, doom) as runtime, alive(runtime):
        posted = await post_message(runtime.services, CALLER, draft(conversation))
        async with asyncio.timeout(15):
            await doom.died.wait()
    await let_claims_run_out(stage.dsn)
    return posted.stored.turn.identity.turn_id


# --- 023: effects and their results ---------------------------------------------------------------


DEATHS = [
    ("commit.answer.before", 1),
    ("commit.answer.after", 1),
    ("tool.writes.before", 1),
    ("tool.writes.before", 2),
    ("tool.writes.after", 1),
    ("tool.writes.after", 2),
    ("tool.reads.after", 1),
    ("commit.results.before", 1),
    ("commit.results.after", 1),
]


async def test_scenario_023_wherever_a_death_comes_a_payment_is_made_once_and_its_result_is_true(
    service: Service, stage: Stage
) -> None:
    three = {
        "calls": [
            {"id": "A", "name": "pay", "arguments": '{"amount": 1}'},
            {"id": "B", "name": "pay", "arguments": '{"amount": 2}'},
            {"id": "C", "name": "look_up", "arguments": '{"what": "c"}'},
        ]
    }
    agents = [clerk(stage.ledger)]
    for n, (point, passage) in enumerate(DEATHS):
        stage.provider.script(MODEL, [three, DONE])
        conversation = f"c{n}"
        turn_id = await dead_at(stage, agents, point, passage=passage, conversation=conversation)
        async with working(service):
            ended = await service.at_rest(turn_id)
        said = (await service.client.get(f"/conversations/{conversation}/messages")).json()
        outcomes = {m["callId"]: m["outcome"] for m in said["items"] if m["role"] == "tool"}
        done = Counter(effect.call_id for effect in stage.ledger.effects(turn_id))

        assert ended["status"] == "COMPLETED", (point, passage)
        assert sorted(outcomes) == ["A", "B", "C"], (point, passage)
        for call_id in ("A", "B"):
            assert done[call_id] <= 1, (point, passage, call_id)
            assert outcomes[call_id] in {"completed", "unknown"}, (point, passage, call_id)
            assert done[call_id] or outcomes[call_id] == "unknown", (point, passage, call_id)
        assert outcomes["C"] == "completed", (point, passage)


# --- 052: nobody is left who could run it ---------------------------------------------------------


async def test_scenario_052_a_conversation_whose_agent_is_gone_has_a_way_out_of_its_approval(
    stage: Stage,
) -> None:
    @external_tool(needs_approval=True)
    def wire(amount: int) -> None:
        """Wire an amount."""

    stage.provider.script(MODEL, [calling("A", "wire", '{"amount": 3}'), DONE])
    older = replace(clerk(stage.ledger), tools=(wire,), version="1")
    newer = replace(clerk(stage.ledger), version="2")
    async with running_service(stage.dsn, stage.settings, agents=[older]) as service:
        waiting = await service.send("c1", "Wire it.", agentId="clerk")
    a_day_later = (
        "UPDATE turns SET updated_at = updated_at - interval '1 day', "
        "waiting_since = waiting_since - interval '1 day'"
    )
    await query(stage.dsn, a_day_later)
    stage.provider.script(MODEL, [DONE] * 3)
    async with running_service(stage.dsn, stage.settings, agents=[newer]) as service:
        said = {"content": "Hello?"}
        taken = await service.client.post("/conversations/c1/messages", json=said)
        refused = await service.client.post("/conversations/c1/messages", json=said)
        cancelled = await service.client.post(f"/turns/{waiting['turnId']}/cancel")
        ended = await service.at_rest(waiting["turnId"])
        again = await service.send("c1", "Hello again.")

    assert waiting["status"] == "WAITING_FOR_APPROVAL"
    assert (taken.status_code, taken.json()["turnId"]) == (202, waiting["turnId"])
    offered = assert_problem(refused, 409, "conversation_busy")["allowedActions"]
    assert "CANCEL" in [each["command"] for each in offered if each["enabled"]]
    assert cancelled.status_code in {200, 202}
    assert ended["status"] == "CANCELLED"
    assert again["turnId"] != waiting["turnId"]
    assert (again["status"], again["agentVersion"]) == ("COMPLETED", "2")
    await check_everything(stage.dsn, stage.ledger)


# --- 056: deploys ---------------------------------------------------------------------------------


async def test_scenario_056_workers_that_stop_in_order_again_and_again_end_no_turn(
    stage: Stage,
) -> None:
    """Each turn is in another step when its worker is asked to stop; the next one goes on."""
    hangs: dict[str, object] = {"text": "At last.", "faults": [{"times": 2, "hang": True}]}
    read = calling("A", "look_up_slowly", '{"what": "a"}')
    stories: dict[str, list[dict[str, object]]] = {
        "asking": [hangs],
        "reading": [read, DONE],
        "paying": [PAY_SLOWLY, DONE],
    }
    for name, rounds in stories.items():
        stage.provider.script(name, rounds)
    settings = stage.settings.model_copy(update={"tool_grace_seconds": 0.1})
    agents = [replace(clerk(stage.ledger), id=name, model=name) for name in stories]
    async with running_service(stage.dsn, settings, agents=agents, with_worker=False) as service:
        ids = {
            name: (await service.send(name, "Go.", agentId=name, wait=0))["turnId"]
            for name in stories
        }
        for times in (1, 2):
            async with working(service):
                await eventually(partial(all_are_begun, stage, times))
            assert await query(stage.dsn, "SELECT count(claimed_by) FROM turns") == 0
            between = [(await service.turn(turn_id))["status"] for turn_id in ids.values()]
            assert not {"FAILED", "CANCELLED", "PAUSED"}.intersection(between)
        async with working(service):
            ended = {name: await service.at_rest(turn_id) for name, turn_id in ids.items()}
        outcomes = {name: await outcomes_of(service, name) for name in ids}

    assert {turn["status"] for turn in ended.values()} == {"COMPLETED"}
    assert outcomes == {"asking": [], "reading": ["cancelled"], "paying": ["unknown"]}
    assert stage.ledger.tools() == ["look_up_slowly", "pay_slowly"]
    assert await query(stage.dsn, "SELECT max(deaths) FROM turns") == 0
    await check_everything(stage.dsn, stage.ledger)


async def all_are_begun(stage: Stage, times: int) -> bool:
    """Whether the model hangs for the n-th time, and both tools have begun."""
    return len(stage.provider.requests("asking")) >= times and is_entered(stage, 2)


async def outcomes_of(service: Service, conversation: str) -> list[str]:
    said = (await service.client.get(f"/conversations/{conversation}/messages")).json()["items"]
    return [each["outcome"] for each in said if each["role"] == "tool"]


# --- 065: other machines --------------------------------------------------------------------------


async def test_scenario_065_new_machines_with_empty_disks_go_on_where_the_old_ones_stood(
    stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    @external_tool
    def fetch(what: str) -> None:
        """Fetch something from outside."""

    stage.provider.script(
        MODEL,
        [
            calling("L", "look_up", '{"what": "a"}'),
            calling("A", "fetch", '{"what": "b"}'),
            {"text": "All fetched."},
        ],
    )
    whole = clerk(stage.ledger)
    agents = [replace(whole, tools=(*whole.tools, fetch))]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        waiting = await service.send("c1", "Fetch.", agentId="clerk")
    asked_before = len(stage.provider.requests(MODEL))
    turn_id = waiting["turnId"]
    done_outside = Effect(
        tool="fetch",
        turn_id=turn_id,
        call_id="A",
        idempotency_key=f"{turn_id}:A",
        attempt=1,
        is_replay=False,
    )
    stage.ledger.enter(done_outside)
    async with elsewhere(stage, tmp_path_factory.mktemp("disk"), agents) as service:
        done = await service.resume(
            turn_id, {"command": "TOOL_RESULT", "callId": "A", "output": {"ok": 1}}
        )
        said = (await service.client.get("/conversations/c1/messages")).json()["items"]

    assert (waiting["status"], asked_before) == ("WAITING_FOR_TOOL", 2)
    assert (done.json()["status"], done.json()["finalOutput"]) == ("COMPLETED", "All fetched.")
    assert len(stage.provider.requests(MODEL)) == 3
    roles = ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [each["role"] for each in said] == roles
    assert stage.ledger.tools() == ["fetch", "look_up"]
    await check_everything(stage.dsn, stage.ledger)


@asynccontextmanager
async def elsewhere(stage: Stage, disk: Path, agents: Sequence[Agent]) -> AsyncGenerator[Service]:
    """The service on a machine that knows the database and nothing else."""
    settings = settings_for_tests(disk, openai_base_url=stage.provider.base_url)
    async with running_service(stage.dsn, settings, agents=agents) as service:
        yield service


# --- 118: one active turn -------------------------------------------------------------------------


ACTIVE = "SELECT count(*) FROM turns WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"


async def test_scenario_118_of_many_messages_at_once_to_two_replicas_one_opens_a_turn(
    stage: Stage,
) -> None:
    """Each sender repeats its message until it is taken: in the end each was said once."""
    stage.provider.script(MODEL, [DONE] * 99)
    senders, twice = size(8, soak=50), list[str]()
    agents = [clerk(stage.ledger)]
    async with (
        running_service(stage.dsn, stage.settings, agents=agents) as one,
        running_service(stage.dsn, stage.settings, agents=agents) as two,
    ):

        async def said(n: int) -> list[int]:
            """The statuses of its tries."""
            statuses: list[int] = []
            while not statuses or statuses[-1] == 409:
                answer = await (one if n % 2 else two).client.post(
                    "/conversations/c1/messages",
                    json={"content": f"{n}", "messageId": f"m{n}", "agentId": "clerk"},
                )
                statuses.append(answer.status_code)
                if await query(stage.dsn, ACTIVE) > 1:
                    twice.append(f"m{n}")
            return statuses

        tries = await asyncio.gather(*map(said, range(senders)))
        turns: list[dict[str, Any]] = (await one.client.get("/turns?limit=100")).json()["items"]
        ended = [await one.at_rest(turn["turnId"]) for turn in turns]
        messages = (await one.client.get("/conversations/c1/messages?limit=200")).json()["items"]

    assert twice == []
    assert {status for each in tries for status in each} == {202, 409}
    assert {turn["status"] for turn in ended} == {"COMPLETED"}
    users = [each["messageId"] for each in messages if each["role"] == "user"]
    assert sorted(users) == sorted(f"m{n}" for n in range(senders))
    await check_everything(stage.dsn, stage.ledger)


# --- 121: a turn that kills its workers -----------------------------------------------------------


async def test_scenario_121_a_turn_that_kills_its_workers_keeps_no_other_waiting(
    stage: Stage,
) -> None:
    """One place for turns; every worker that takes the deadly turn dies of it."""
    stage.provider.script("deadly", [calling("A", "look_up_slowly", '{"what": "a"}')])
    stage.provider.script(MODEL, [DONE])
    deadly = replace(clerk(stage.ledger), id="deadly", model="deadly")
    alone_for_long = {"worker_concurrency": 1, "claim_lease_seconds": 60}
    settings = stage.settings.model_copy(update=alone_for_long)
    async with running_service(
        stage.dsn, settings, agents=[deadly, clerk(stage.ledger)], with_worker=False
    ) as service:
        killer = (await service.send("deadly", "Go.", agentId="deadly", wait=0))["turnId"]
        await dies_of(service, stage, times=1)
        healthy = (await service.send("c1", "Go.", agentId="clerk", wait=0))["turnId"]
        await dies_of(service, stage, times=2)
        async with working(service):  # which leaves the deadly one alone for a while
            done = await service.at_rest(healthy)
        tried, at_work = len(stage.ledger.effects()), await service.turn(killer)
        await query(stage.dsn, LONG_AGO)
        await dies_of(service, stage, times=3)
        await query(stage.dsn, LONG_AGO)
        async with working(service):
            paused = await service.at_rest(killer)
        cancelled = await service.client.post(f"/turns/{killer}/cancel")

    assert done["status"] == "COMPLETED"
    assert (tried, at_work["status"]) == (2, "RUNNING")
    assert (paused["status"], paused["pause"]["cause"]) == ("PAUSED", "crash_loop")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "CANCELLED")
    await check_everything(stage.dsn, stage.ledger)


JUST_NOW = "UPDATE turns SET claimed_until = clock_timestamp() WHERE claimed_until IS NOT NULL"
"""When the lease was over: a turn that kills is left alone from then on."""
LONG_AGO = "UPDATE turns SET claimed_until = claimed_until - interval '1 hour'"


async def dies_of(service: Service, stage: Stage, *, times: int) -> None:
    """The worker dies without a farewell as soon as the deadly tool was entered so many times."""

    async def is_killing() -> bool:
        return is_entered(stage, times)

    async with alive(service.runtime):
        await eventually(is_killing)
    await query(stage.dsn, JUST_NOW)
