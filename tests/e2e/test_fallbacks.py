"""Fallback models over HTTP, from one provider to another and from one wire to the other."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from app.agents import Agent
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
from tests.support.oracles import records
from tests.support.service import running_service

DOWN = {"times": 9, "status": 503, "body": {"error": {"message": "The server is overloaded."}}}
NO_CREDIT = {
    "times": 9,
    "status": 429,
    "body": {"error": {"message": "No credit is left.", "code": "insufficient_quota"}},
}
MALFORMED = {
    "times": 9,
    "status": 400,
    "body": {"error": {"message": "Unknown field.", "type": "invalid_request_error"}},
}
LONG_ID = "call_" + "x" * 40
LONG_ID_TOO = "call_" + "x" * 39 + "y"


@tool(effect="reads")
def look(what: str) -> str:
    return f"seen {what}"


AGENT = Agent(id="clerk", instructions="", models=["first", "second"], tools=[look])
ROUND = {
    "calls": [
        {"id": LONG_ID, "name": "look", "arguments": '{"what":"a"}'},
        {"id": LONG_ID_TOO, "name": "look", "arguments": '{"what":"b"}'},
    ]
}


@pytest.fixture
async def claude() -> AsyncGenerator[AnthropicProvider]:
    async with running_anthropic() as provider:
        yield provider


@pytest.fixture
def settings(stage: Stage, claude: AnthropicProvider, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("CLAUDE_KEY", KEY)
    providers = {
        "claude": ProviderSettings(
            kind="anthropic", base_url=claude.base_url, api_key_env="CLAUDE_KEY"
        ),
        "picky": ProviderSettings(
            kind="openai", base_url=stage.provider.base_url, call_ids="nine_characters"
        ),
    }
    return stage.settings.model_copy(update={"providers": providers})


def bodies(stage: Stage, model: str) -> list[Any]:
    return [request["body"] for request in stage.provider.requests(model)]


def statuses(stage: Stage, model: str) -> list[object]:
    return [request["status"] for request in stage.provider.requests(model)]


async def test_a_model_that_is_out_of_credit_is_asked_once_and_the_next_one_answers(
    stage: Stage,
) -> None:
    stage.provider.script("first", [{"text": "", "faults": [NO_CREDIT]}])
    stage.provider.script("second", [ROUND, {"text": "Both seen."}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        done = await service.send("c1", "Look twice.", agentId="clerk")
        failures = await service.client.get(f"/turns/{done['turnId']}/failures")

    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "Both seen.")
    assert (statuses(stage, "first"), statuses(stage, "second")) == ([429], [200, 200])
    assert [item["type"] for item in failures.json()["items"]] == ["QUOTA_EXCEEDED"]
    assert done["counters"] | {"modelAttempts": 3, "modelFailures": 1} == done["counters"]


async def test_when_all_have_failed_the_turn_waits_and_every_failure_is_in_the_history(
    stage: Stage,
) -> None:
    stage.provider.script("first", [{"text": "", "faults": [NO_CREDIT]}])
    stage.provider.script("second", [{"text": "", "faults": [DOWN]}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        waiting = await service.send("c1", "Go.", agentId="clerk")
        failures = await service.client.get(f"/turns/{waiting['turnId']}/failures")
        stage.provider.script("first", [{"text": "Here I am."}])
        done = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})

    found = failures.json()["items"]
    assert (waiting["status"], waiting["failureType"]) == ("WAITING_FOR_MODEL", "OVERLOADED")
    assert [item["type"] for item in found] == ["QUOTA_EXCEEDED", "OVERLOADED"]
    assert waiting["failureId"] == found[-1]["failureId"] != found[0]["failureId"]
    assert done.json()["finalOutput"] == "Here I am."


async def test_scenario_016_a_fallback_gets_call_ids_of_its_own_form_and_no_other_id_changes(
    stage: Stage, settings: Settings
) -> None:
    agent = replace(AGENT, models=["first", "picky/second"])
    stage.provider.script("first", [ROUND, {"text": "", "faults": [DOWN]}])
    stage.provider.script("second", [{}, {"text": "Both seen."}])
    async with running_service(stage.dsn, settings, agents=[agent]) as service:
        done = await service.send("c1", "Look twice.", agentId="clerk")
        page = await service.client.get("/conversations/c1/messages")

    (asked,) = bodies(stage, "second")
    sent = [call["id"] for call in asked["messages"][1]["tool_calls"]]
    assert done["status"] == "COMPLETED"
    assert [m["tool_call_id"] for m in asked["messages"][2:]] == sent
    assert all(len(one) == 9 and one.isalnum() for one in sent)
    assert len(set(sent)) == 2
    stored = page.json()["items"][1]["toolCalls"]
    assert [call["callId"] for call in stored] == [LONG_ID, LONG_ID_TOO]


async def test_signed_thinking_does_not_go_to_a_fallback_and_goes_back_whole_to_its_maker(
    stage: Stage, settings: Settings, claude: AnthropicProvider
) -> None:
    agent = replace(AGENT, models=["claude/opus", "second"])
    signed = [thinking("Let me see.", "toolu_A"), tool_use("toolu_A", "look", what="a")]
    claude.rounds = [signed, [], [], [text("As I said.")]]
    claude.outages = [200, 529]
    stage.provider.script("second", [{}, {"text": "Seen."}])
    async with running_service(stage.dsn, settings, agents=[agent]) as service:
        first = await service.send("c1", "Look.", agentId="clerk")
        claude.rounds = [[], [], [text("As I said.")]]
        then = await service.send("c1", "And?", agentId="clerk")

    (asked,) = bodies(stage, "second")
    assert (first["finalOutput"], then["finalOutput"]) == ("Seen.", "As I said.")
    assert set(asked["messages"][1]) == {"role", "content", "tool_calls"}
    assert statuses(stage, "second") == [200]
    assert claude.refusals == []
    assert claude.requests[-1]["messages"][1]["content"] == signed


async def test_from_the_openai_wire_to_the_anthropic_one_the_history_is_taken(
    stage: Stage, settings: Settings, claude: AnthropicProvider
) -> None:
    agent = replace(AGENT, models=["first", "claude/opus"])
    stage.provider.script("first", [ROUND, {"text": "", "faults": [DOWN]}])
    claude.rounds = [[], [text("Both seen.")]]
    async with running_service(stage.dsn, settings, agents=[agent]) as service:
        done = await service.send("c1", "Look twice.", agentId="clerk")

    assert (done["finalOutput"], claude.refusals) == ("Both seen.", [])


async def test_behind_its_first_words_a_broken_answer_is_not_taken_to_another_model(
    stage: Stage,
) -> None:
    broken = {"text": "word " * 200, "chunks": 80, "faults": [{"cut_at_byte": 6_000}]}
    stage.provider.script("first", [broken])
    stage.provider.script("second", [{"text": "Whole."}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        waiting = await service.send("c1", "Go.", agentId="clerk")

    assert waiting["status"] == "WAITING_FOR_MODEL"
    assert stage.provider.requests("second") == []


async def test_a_request_that_a_fallback_finds_malformed_waits(stage: Stage) -> None:
    stage.provider.script("first", [{"text": "", "faults": [DOWN]}])
    stage.provider.script("second", [{"text": "", "faults": [MALFORMED]}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        waiting = await service.send("c1", "Go.", agentId="clerk")
        async with records(stage.dsn) as found:
            record = await found.of(waiting["turnId"])

    assert (waiting["status"], waiting["failureType"]) == ("WAITING_FOR_MODEL", "UNAVAILABLE")
    assert record.types.count("MODEL_FAILED") == 2


async def test_a_request_that_the_first_model_finds_malformed_fails_the_turn(
    stage: Stage,
) -> None:
    stage.provider.script("first", [{"text": "", "faults": [MALFORMED]}])
    async with running_service(stage.dsn, stage.settings, agents=[AGENT]) as service:
        failed = await service.send("c1", "Go.", agentId="clerk")

    assert failed["status"] == "FAILED"
    assert stage.provider.requests("second") == []


async def test_a_request_that_is_refused_where_the_settings_have_moved_its_model_waits(
    stage: Stage, settings: Settings
) -> None:
    agent = replace(AGENT, models=["picky/first"])
    stage.provider.script("first", [{"text": "", "faults": [NO_CREDIT]}])
    async with running_service(stage.dsn, settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Go.", agentId="clerk")
    stage.provider.script("first", [{"text": "Here.", "faults": [{**MALFORMED, "times": 1}]}])
    elsewhere = ProviderSettings(kind="openai", base_url=f"{stage.provider.base_url}/?moved=1")
    moved = settings.model_copy(update={"providers": {"picky": elsewhere}})
    async with running_service(stage.dsn, moved, agents=[agent]) as service:
        refused = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        again = {"failureId": refused.json()["failureId"]}
        done = await service.resume(waiting["turnId"], again)

    assert (refused.json()["status"], refused.json()["failureType"]) == (
        "WAITING_FOR_MODEL",
        "UNAVAILABLE",
    )
    assert (done.json()["status"], done.json()["finalOutput"]) == ("COMPLETED", "Here.")
