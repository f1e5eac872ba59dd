"""A limit that pauses, and the operator who raises it."""

from pathlib import Path

from app.agents import Agent, Limits
from app.tools import tool
from tests.support.provider import running_provider
from tests.support.service import running_service, settings_for_tests

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
