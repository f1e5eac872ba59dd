"""Turns whose model speaks the Anthropic wire, over HTTP, against a provider that checks all."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest

from app.agents import Agent, RetryPolicy
from app.settings import ProviderSettings, Settings
from app.tools import tool
from tests.e2e.conftest import Stage
from tests.support.anthropic_provider import (
    KEY,
    AnthropicProvider,
    running_anthropic,
    text,
    thinking,
    tool_use,
)
from tests.support.resuming import point_of
from tests.support.service import running_service

# What a careless copy would change: no letters, spaces at the ends, several scripts, a line end
# that is none in JSON.
THOUGHT = "  Ich prüfe das 🤔\u2028「在庫」 \n\n "
LATER = RetryPolicy(max_retries=1, initial_delay=timedelta(hours=1), max_delay=timedelta(days=1))
ROUND = [
    thinking(THOUGHT, "toolu_A", "toolu_B"),
    {"type": "redacted_thinking", "data": "RW5jcnlwdGVk"},
    text("I look. "),
    tool_use("toolu_A", "look", what="a", large=2**60),
    text("Both."),
    tool_use("toolu_B", "look", what="b", large=0),
]


@tool(effect="reads")
def look(what: str, large: int) -> str:
    return f"{what} {large}"


@tool(effect="reads", on_error="retry_then_model", retry=LATER)
def fetch() -> str:
    raise ConnectionError


def _agent(*, model: str = "claude/opus") -> Agent:
    return Agent(id="thinker", instructions="Think.", model=model, tools=[look, fetch])


@pytest.fixture
async def claude() -> AsyncGenerator[AnthropicProvider]:
    async with running_anthropic() as provider:
        yield provider


@pytest.fixture
def settings(stage: Stage, claude: AnthropicProvider, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("CLAUDE_KEY", KEY)
    claude_settings = ProviderSettings(
        kind="anthropic",
        base_url=claude.base_url,
        api_key_env="CLAUDE_KEY",
        extra_body={"thinking": {"type": "adaptive"}, "max_tokens": 20_000},
    )
    openai = ProviderSettings(kind="openai", base_url=stage.provider.base_url)
    return stage.settings.model_copy(
        update={"providers": {"claude": claude_settings, "other": openai}}
    )


def _last_turns(provider: AnthropicProvider) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = provider.requests[-1]["messages"]
    return turns


async def test_a_turn_thinks_uses_tools_and_answers(
    stage: Stage, settings: Settings, claude: AnthropicProvider
) -> None:
    claude.rounds = [ROUND, [thinking("Enough."), text("Found.")]]
    async with running_service(stage.dsn, settings, agents=[_agent()]) as service:
        turn = await service.send("c1", "Look twice.", agentId="thinker")

    asked, told = _last_turns(claude)[1:]
    assert (turn["status"], claude.refusals) == ("COMPLETED", [])
    assert asked["content"] == ROUND
    assert told["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_A", "content": f"a {2**60}"},
        {"type": "tool_result", "tool_use_id": "toolu_B", "content": "b 0"},
    ]
    first = claude.requests[0]
    assert (first["system"], first["max_tokens"]) == ("Think.", 20_000)
    assert first["thinking"] == {"type": "adaptive"}
    assert turn["usage"]["inputTokens"] == 80


async def test_signed_thinking_survives_an_outage_and_a_new_process_byte_for_byte(
    stage: Stage, settings: Settings, claude: AnthropicProvider
) -> None:
    claude.rounds = [ROUND, [text("Found.")]]
    claude.outages = [200, 529]
    async with running_service(stage.dsn, settings, agents=[_agent()]) as service:
        waiting = await service.send("c1", "Look.", agentId="thinker")
    async with running_service(stage.dsn, settings, agents=[_agent()]) as service:
        command: dict[str, object] = {"command": "RETRY_MODEL", "failureId": waiting["failureId"]}
        done = await service.resume(waiting["turnId"], command)

    assert (waiting["status"], waiting["failureType"]) == ("WAITING_FOR_MODEL", "OVERLOADED")
    assert (done.json()["status"], claude.refusals) == ("COMPLETED", [])
    assert _last_turns(claude)[1]["content"] == ROUND


async def test_another_provider_gets_the_message_without_thinking_and_its_own_gets_it_whole(
    stage: Stage, settings: Settings, claude: AnthropicProvider
) -> None:
    writer = Agent(id="writer", instructions="", model="other/story", tools=[look, fetch])
    claude.rounds = [ROUND, [text("Found.")], [], [text("You are welcome.")]]
    stage.provider.script("story", [{}, {}, {"text": "In short: found."}])
    async with running_service(stage.dsn, settings, agents=[_agent(), writer]) as service:
        await service.send("c1", "Look.", agentId="thinker")
        other = await service.send("c1", "Sum up.", agentId="writer")
        done = await service.send("c1", "Thanks.", agentId="thinker")

    assert (other["status"], done["status"], claude.refusals) == ("COMPLETED", "COMPLETED", [])
    sent: Any = stage.provider.requests("story")[0]
    assert sent["status"] == 200
    assert set(sent["body"]["messages"][1]) == {"role", "content", "tool_calls"}
    assert _last_turns(claude)[1]["content"] == ROUND


async def test_thinking_stays_with_a_call_that_was_interrupted(
    stage: Stage, settings: Settings, claude: AnthropicProvider
) -> None:
    asks = [thinking(THOUGHT, "toolu_F"), tool_use("toolu_F", "fetch")]
    claude.rounds = [asks, [text("As you wish.")]]
    async with running_service(stage.dsn, settings, agents=[_agent()]) as service:
        waiting = await service.send("c1", "Fetch.", agentId="thinker")
        done = await service.send("c1", "Forget that.", agentId="thinker")

    asked, told = _last_turns(claude)[1:]
    assert (waiting["status"], done["status"]) == ("RETRY_SCHEDULED", "COMPLETED")
    assert claude.refusals == []
    assert asked["content"] == asks
    assert [block["type"] for block in told["content"]] == ["tool_result", "text"]


SEARCH: dict[str, Any] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "在庫"},
}
FOUND: dict[str, Any] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {"type": "web_search_result", "url": "https://x.test", "encrypted_content": "Rm8="}
    ],
}


@pytest.mark.parametrize(
    "paused",
    [
        [thinking(THOUGHT), text("I search. "), SEARCH, FOUND],
        [SEARCH, FOUND],
        [text("I search. ")],
    ],
    ids=["thinking and text", "nothing said", "text alone"],
)
async def test_a_paused_answer_goes_back_as_it_was_and_is_one_with_what_follows(
    stage: Stage, settings: Settings, claude: AnthropicProvider, paused: list[dict[str, Any]]
) -> None:
    claude.rounds = [paused, [text("Found.")]]
    claude.pauses = frozenset({0})
    async with running_service(stage.dsn, settings, agents=[_agent()]) as service:
        turn = await service.send("c1", "Search.", agentId="thinker")

    assert (turn["status"], claude.refusals) == ("COMPLETED", [])
    assert _last_turns(claude)[-1]["content"] == paused
    said = "I search. " if text("I search. ") in paused else ""
    assert turn["finalOutput"] == f"{said}Found."


async def test_case_31_the_sixth_pause_is_an_end_and_another_model_goes_on_behind_a_word(
    stage: Stage, settings: Settings, claude: AnthropicProvider
) -> None:
    claude.rounds = [[text(f"{n} ")] for n in range(6)]
    claude.pauses = frozenset(range(6))
    unsaid: list[dict[str, object]] = [{} for _ in range(6)]
    stage.provider.script("story", [*unsaid, {"text": "Found."}])
    async with running_service(stage.dsn, settings, agents=[_agent()]) as service:
        ended = await service.send("c1", "Search.", agentId="thinker")
        point = await point_of(service, "c1")
        answer = await service.client.post(
            "/conversations/c1/resume",
            json={"model": "other/story"},
            headers={"Prefer": "wait=20"},
        )

    assert (ended["status"], ended["stopReason"]) == ("COMPLETED", "PAUSED")
    assert (point["kind"], len(claude.requests), claude.refusals) == ("CALL_MODEL", 6, [])
    assert ended["finalOutput"] == "0 1 2 3 4 5 "
    assert (answer.json()["status"], answer.json()["finalOutput"]) == ("COMPLETED", "Found.")
    sent: Any = stage.provider.requests("story")[0]["body"]
    assert sent["messages"][-1] == {"role": "user", "content": "Go on."}
