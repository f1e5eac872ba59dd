"""Limits over HTTP: where a turn ends, or pauses until an operator raises the limit."""

from pathlib import Path

import orjson

from app.agents import Agent, Limits
from app.tools import tool
from tests.e2e.conftest import Stage
from tests.support.oracles import check_history, records
from tests.support.provider import running_provider
from tests.support.service import running_service, settings_for_tests
from tests.support.story import QUOTA

ROUNDS: list[dict[str, object]] = [
    {"calls": [{"id": "A", "name": "count", "arguments": "{}"}]},
    {"calls": [{"id": "B", "name": "count", "arguments": "{}"}]},
    {"text": "Counted twice."},
]


async def test_a_turn_that_a_limit_has_paused_goes_on_when_an_operator_raises_it(
    database_dsn: str, tmp_path: Path
) -> None:
    counted: list[str] = []

    @tool(effect="writes")
    def count() -> str:
        """Count."""
        counted.append("once more")
        return str(len(counted))

    agent = Agent(
        id="counter",
        instructions="Count.",
        model="counting",
        tools=(count,),
        limits=Limits(max_tool_calls=1, is_blocking=True),
    )
    async with running_provider() as provider:
        provider.script("counting", ROUNDS)
        settings = settings_for_tests(tmp_path, openai_base_url=provider.base_url)
        async with running_service(database_dsn, settings, agents=[agent]) as service:
            paused = await service.send("c1", "Count twice.", agentId="counter")
            same = await service.resume(paused["turnId"], {"command": "RESUME"})
            changes = {"limits": {"maxToolCalls": 5}}
            done = await service.resume(paused["turnId"], {"command": "RESUME", "changes": changes})

    assert (paused["status"], paused["pause"]["limit"]) == ("PAUSED", "max_tool_calls")
    assert same.json()["status"] == "PAUSED"
    assert (done.json()["status"], done.json()["finalOutput"]) == ("COMPLETED", "Counted twice.")
    assert counted == ["once more", "once more"]


def limited(limits: Limits) -> tuple[Agent, list[str]]:
    """An agent with one tool, and what that tool did."""
    entered: list[str] = []

    @tool(effect="reads")
    def count() -> str:
        """Count."""
        entered.append("count")
        return str(len(entered))

    agent = Agent(id="counter", instructions="", model="story", tools=[count], limits=limits)
    return agent, entered


def rounds_of_calls(number: int) -> list[dict[str, object]]:
    """The model asks for the tool so many times, one call after the other."""
    return [{"calls": [{"id": f"c{n}", "name": "count", "arguments": "{}"}]} for n in range(number)]


async def test_case_113_a_call_that_failed_is_no_iteration(stage: Stage) -> None:
    agent, _ = limited(Limits(max_iterations=1))
    stage.provider.script("story", [{"text": "Done.", "faults": [QUOTA]}])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Go.", agentId="counter")
        done = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})

    assert (waiting["status"], done.json()["status"]) == ("WAITING_FOR_MODEL", "COMPLETED")


async def test_case_114_the_call_beyond_the_last_iteration_is_not_sent(stage: Stage) -> None:
    agent, entered = limited(Limits(max_iterations=3))
    stage.provider.script("story", rounds_of_calls(4))
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        turn = await service.send("c1", "Go.", agentId="counter")
        async with records(stage.dsn) as found:
            record = await found.of(turn["turnId"])

    assert (turn["status"], turn["counters"]["modelSuccesses"]) == ("MAX_ITERATIONS_REACHED", 3)
    assert len(stage.provider.requests("story")) == len(entered) == 3
    assert record.transcript[-1].role == "closing"
    check_history(record)


async def test_case_115_remaining_iterations_count_successes_only(stage: Stage) -> None:
    agent, _ = limited(Limits(max_iterations=5))
    last = {"text": "Done.", "faults": [QUOTA]}
    stage.provider.script("story", [*rounds_of_calls(1), last])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Go.", agentId="counter")
        await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        stream = await service.client.get(f"/turns/{waiting['turnId']}/events")

    lines = [line for line in stream.text.splitlines() if line.startswith("data: ")]
    events = [orjson.loads(line.removeprefix("data: ")) for line in lines]
    remaining = [
        (event["type"], event["data"]["remainingIterations"])
        for event in events
        if event["type"] in {"MODEL_STARTED", "MODEL_COMPLETED"}
    ]
    assert remaining == [
        ("MODEL_STARTED", 5),
        ("MODEL_COMPLETED", 4),
        ("MODEL_STARTED", 4),
        ("MODEL_STARTED", 4),
        ("MODEL_COMPLETED", 3),
    ]


async def test_case_116_what_is_asked_of_a_turn_that_waits_or_has_ended_is_no_step(
    stage: Stage,
) -> None:
    agent, _ = limited(Limits())
    stage.provider.script("story", [{"text": "", "faults": [QUOTA | {"times": 9}]}])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Go.", agentId="counter")
        path = f"/turns/{waiting['turnId']}"
        for command in ("RETRY", "CONTINUE", "RESUME"):
            await service.resume(waiting["turnId"], {"command": command}, wait=0)
        still = await service.turn(waiting["turnId"])
        cancelled = await service.client.post(f"{path}/cancel")
        await service.resume(waiting["turnId"], {"command": "RETRY"}, wait=0)
        ended = await service.turn(waiting["turnId"])

    assert (waiting["status"], cancelled.json()["status"]) == ("WAITING_FOR_MODEL", "CANCELLED")
    steps = [turn["counters"]["steps"] for turn in (waiting, still, ended)]
    assert steps == [1, 1, 1]


async def test_case_118_no_tool_of_an_answer_that_breaks_the_token_budget_runs(
    stage: Stage,
) -> None:
    agent, entered = limited(Limits(max_total_tokens=100))
    costly = {"usage": {"prompt_tokens": 90, "completion_tokens": 11}}
    stage.provider.script("story", [rounds_of_calls(1)[0] | costly])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        turn = await service.send("c1", "Go.", agentId="counter")
        page = await service.client.get("/conversations/c1/messages")
        async with records(stage.dsn) as found:
            check_history(await found.of(turn["turnId"]))

    assert (turn["status"], turn["usage"]["inputTokens"]) == ("BUDGET_EXCEEDED", 90)
    assert entered == []
    said = [(item["role"], item.get("outcome")) for item in page.json()["items"]]
    assert said == [
        ("user", None),
        ("assistant", None),
        ("tool", "cancelled"),
        ("closing", None),
    ]
