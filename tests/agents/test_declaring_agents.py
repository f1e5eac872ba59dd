from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any, cast

import pytest

from app.agents import Agent, AgentDeclarationError, Limits, RetryPolicy
from app.turn.agent import Agent as CoreAgent
from app.turn.transcript import Outcome
from tests.agents.tools import a_tool


def refusal_of(**declared: object) -> str:
    with pytest.raises(AgentDeclarationError) as refused:
        cast("Any", Agent)(**{"id": "support", "instructions": "Help.", **declared})
    return str(refused.value)


def retry(**changed: object) -> RetryPolicy:
    return cast("RetryPolicy", cast("Any", RetryPolicy)(**changed))


def limits(**changed: object) -> Limits:
    return cast("Limits", cast("Any", Limits)(**changed))


def test_an_agent_becomes_a_value_of_the_core_together_with_its_tools() -> None:
    search, save = a_tool("search"), a_tool("save")
    declared = Agent(
        id="support",
        version="3",
        instructions="Help.",
        model="openai/gpt",
        tools=[search, save],
        retry=RetryPolicy(max_retries=2),
        limits=Limits(max_steps=9),
        on_model_failure="fail",
        on_invalid_request="wait",
        partial_output="drop",
        on_truncated="continue",
        max_continuations=2,
        leave_out=["refused", "partial"],
        interruption_text={"unknown": "Check {toolName}."},
    )

    loaded = declared.loaded()

    assert loaded.agent == CoreAgent(
        agent_id=loaded.agent.agent_id,
        version=loaded.agent.version,
        instructions="Help.",
        model="openai/gpt",
        tools=(search.spec, save.spec),
        retry=RetryPolicy(max_retries=2),
        limits=Limits(max_steps=9),
        on_model_failure="fail",
        on_invalid_request="wait",
        partial_output="drop",
        on_truncated="continue",
        max_continuations=2,
        leave_out=("partial", "refused"),
        interruption_text={Outcome.UNKNOWN: "Check {toolName}."},
    )
    assert (loaded.agent.agent_id, loaded.agent.version) == ("support", "3")
    assert loaded.tools == {"search": search, "save": save}


def test_an_agent_never_changes_even_through_the_list_it_was_made_of() -> None:
    tools = [a_tool()]
    agent = Agent(id="support", instructions="Help.", tools=tools)

    tools.clear()

    assert len(agent.tools) == 1
    with pytest.raises(FrozenInstanceError):
        agent.id = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("name", ["a", "Support_2.de:x-y", "x" * 128])
def test_ids_and_versions_are_plain_names(name: str) -> None:
    assert Agent(id=name, version=name, instructions="").exact_version == name


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ü", "x" * 129, "line\n", None, 3])
def test_other_ids_and_versions_are_refused(name: object) -> None:
    assert f"agent {name!r}: id must be 1 to 128 of" in refusal_of(id=name)
    if name is not None:
        assert "agent 'support': version must be 1 to 128 of" in refusal_of(version=name)


@pytest.mark.parametrize(
    ("declared", "rule"),
    [
        ({"instructions": None}, "instructions must be a string, not None"),
        ({"instructions": "\ud800"}, "instructions must be text that UTF-8 can hold"),
        ({"model": ""}, "model must be 'provider/model' without spaces, or None, not ''"),
        ({"model": "a b"}, "model must be 'provider/model'"),
        ({"model": "\ud800"}, "model must be 'provider/model'"),
        ({"tools": None}, "tools must be a list of tools, not None"),
        ({"tools": "search"}, "tools must be a list of tools, not 'search'"),
        (
            {"tools": [print]},
            "tools must be made with @tool or @external_tool, not <built-in function print>",
        ),
        ({"tools": [a_tool(), a_tool()]}, "two of its tools are named 'search'"),
        ({"tools": [a_tool(parameters="{")]}, "parameters of tool 'search' must be a JSON Schema"),
        ({"tools": [a_tool(description="\udfff")]}, "tool 'search' must be text that UTF-8"),
        ({"retry": None}, "retry must be a RetryPolicy, not None"),
        ({"retry": retry(max_retries=-1)}, "retry.max_retries must be a whole number from 0"),
        ({"retry": retry(max_retries=True)}, "retry.max_retries must be a whole number"),
        ({"retry": retry(initial_delay=1)}, "retry.initial_delay must be a timedelta"),
        ({"retry": retry(max_delay=timedelta(days=31))}, "retry.max_delay must be a timedelta"),
        ({"retry": retry(max_delay=timedelta(0))}, "retry.max_delay must not be shorter"),
        ({"retry": retry(max_retry_after=-timedelta(1))}, "retry.max_retry_after must be"),
        ({"retry": retry(multiplier=0.5)}, "retry.multiplier must be a number from 1 to 100"),
        ({"retry": retry(multiplier=float("nan"))}, "retry.multiplier must be a number"),
        ({"retry": retry(multiplier="2")}, "retry.multiplier must be a number"),
        ({"retry": retry(jitter="half")}, "retry.jitter must be 'full' or 'none', not 'half'"),
        ({"on_model_failure": "ask"}, "on_model_failure must be 'wait' or 'fail', not 'ask'"),
        ({"on_invalid_request": "ask"}, "on_invalid_request must be 'fail' or 'wait', not 'ask'"),
        ({"partial_output": True}, "partial_output must be 'keep' or 'drop', not True"),
        ({"on_truncated": "stop"}, "on_truncated must be 'complete' or 'continue', not 'stop'"),
        ({"max_continuations": 0}, "max_continuations must be a whole number from 1 to 100, not 0"),
        ({"max_continuations": True}, "max_continuations must be a whole number from 1 to 100"),
        ({"leave_out": "partial"}, "leave_out must be a list of kinds of messages, not 'partial'"),
        ({"leave_out": ["all"]}, "leave_out may name 'partial' and 'refused', not 'all'"),
        ({"on_crash": "stop"}, "on_crash must be 'continue' or 'pause', not 'stop'"),
        ({"limits": 5}, "limits must be a Limits, not 5"),
        ({"limits": limits(max_iterations=0)}, "limits.max_iterations must be a whole number"),
        ({"limits": limits(max_steps=1.5)}, "limits.max_steps must be a whole number from 1"),
        ({"interruption_text": "Given up."}, "interruption_text must map outcomes to templates"),
        (
            {"interruption_text": {"completed": "Done."}},
            "none of not_started, unknown, cancelled, superseded, expired, not 'completed'",
        ),
        ({"interruption_text": {"unknown": " "}}, "interruption_text['unknown'] must be a text of"),
        ({"interruption_text": {"unknown": 5}}, "must be a text of 1 to 2,000 characters, not 5"),
        ({"interruption_text": {"unknown": "x" * 2_001}}, "must be a text of 1 to 2,000 char"),
        ({"interruption_text": {"unknown": "\ud800"}}, "must be text that UTF-8 can hold"),
        (
            {"interruption_text": {"unknown": "{toolName} {tool_name}"}},
            "may name {callId}, {reason}, {toolName}, {turnId}, not {tool_name}",
        ),
        ({"limits": limits(parallel_tools=257)}, "limits.parallel_tools must be a whole number"),
    ],
)
def test_a_part_out_of_its_range_is_refused_naming_the_agent_and_the_range(
    declared: dict[str, object], rule: str
) -> None:
    said = refusal_of(**declared)

    assert said.startswith("agent 'support': ")
    assert rule in said


def test_a_long_value_is_not_repeated_in_full() -> None:
    assert len(refusal_of(instructions=["x" * 10_000])) < 400
