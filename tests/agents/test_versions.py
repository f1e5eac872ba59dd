"""A version is a name for the declaration as written, in every process and every release."""

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from datetime import date, timedelta
from typing import Annotated, Literal, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel, Field

from app.agents import Agent, Limits, RetryPolicy
from app.agents.builtin import builtin_agent
from app.tools import ToolContext, tool
from app.tools.demo import demo_tools
from app.turn.agent import Effect
from tests.agents.tools import a_tool

PLAIN = Agent(id="support", instructions="Help.")

json_values: SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


class Address(BaseModel):
    """Where it goes."""

    street: str
    country: Literal["de", "fr"] = "de"


@tool(effect="idempotent")
def common(
    text: Annotated[str, Field(description="Words.", max_length=9)],
    number: int,
    to: Address,
    context: ToolContext,
    day: date | None = None,
    several: tuple[float, ...] = (),
    states: frozenset[str] = frozenset({"new", "open", "paid", "sent", "lost"}),
    more: dict[str, list[bool]] = {},  # noqa: B006 - a default as users write it
) -> str:
    """Take everything."""
    return f"{text}{number}{to}{context}{day}{several}{states}{more}"


def reversed_keys(value: object) -> object:
    match value:
        case dict():
            items = list(cast("dict[str, object]", value).items())
            return {key: reversed_keys(each) for key, each in reversed(items)}
        case list():
            return [reversed_keys(each) for each in cast("list[object]", value)]
        case _:
            return value


def test_without_a_version_it_follows_from_the_hash_of_the_declaration() -> None:
    assert PLAIN.exact_version == f"h-{PLAIN.declaration_hash[:12]}"
    assert len(PLAIN.declaration_hash) == 64


def test_a_declared_version_is_no_part_of_the_hash() -> None:
    assert replace(PLAIN, version="1").declaration_hash == PLAIN.declaration_hash
    assert replace(PLAIN, version="1").exact_version == "1"


@settings(deadline=None)
@given(schema=st.dictionaries(st.text(), json_values, max_size=4))
def test_the_order_of_keys_and_the_spacing_of_a_schema_do_not_matter(
    schema: dict[str, object],
) -> None:
    one = a_tool(parameters=json.dumps(schema))
    other = a_tool(parameters=json.dumps(reversed_keys(schema), indent=2, ensure_ascii=False))

    hashes = {replace(PLAIN, tools=[each]).declaration_hash for each in (one, other)}

    assert len(hashes) == 1


@pytest.mark.parametrize(
    "changed",
    [
        replace(PLAIN, id="other"),
        replace(PLAIN, instructions="Help!"),
        replace(PLAIN, model="openai/gpt"),
        replace(PLAIN, retry=RetryPolicy(max_retries=1)),
        replace(PLAIN, retry=RetryPolicy(max_delay=timedelta(seconds=61))),
        replace(PLAIN, limits=Limits(parallel_tools=1)),
        replace(PLAIN, on_model_failure="fail"),
        replace(PLAIN, on_invalid_request="wait"),
        replace(PLAIN, partial_output="drop"),
        replace(PLAIN, on_truncated="continue"),
        replace(PLAIN, max_continuations=4),
        replace(PLAIN, leave_out=["partial"]),
        replace(PLAIN, leave_out=["partial", "refused"]),
        replace(PLAIN, on_crash="pause"),
        replace(PLAIN, interruption_text={"unknown": "Check {toolName}."}),
        replace(PLAIN, interruption_text={"cancelled": "Check {toolName}."}),
        replace(PLAIN, tools=[a_tool()]),
        replace(PLAIN, tools=[a_tool(block_following=True)]),
        replace(PLAIN, tools=[a_tool(effect=Effect.WRITES)]),
        replace(PLAIN, tools=[a_tool(description="Look.")]),
        replace(PLAIN, tools=[a_tool(parameters='{"type":"object","properties":{"a":{}}}')]),
        replace(PLAIN, tools=[a_tool("find")]),
        replace(PLAIN, tools=[a_tool("find"), a_tool()]),
        replace(PLAIN, tools=[a_tool(), a_tool("find")]),
    ],
)
def test_whatever_is_written_otherwise_makes_another_version(changed: Agent) -> None:
    others = [PLAIN, replace(PLAIN, tools=[a_tool(effect=Effect.IDEMPOTENT)])]

    assert changed.exact_version not in {each.exact_version for each in others}


def test_a_default_written_out_is_the_same_as_one_left_out() -> None:
    """So that a release may add options without changing agents that do not use them."""
    written = RetryPolicy(
        **{each.name: getattr(PLAIN.retry, each.name) for each in fields(RetryPolicy)}
    )

    assert replace(PLAIN, retry=written, limits=Limits(max_steps=1_000)) == PLAIN
    assert replace(PLAIN, retry=written).declaration_hash == PLAIN.declaration_hash


def test_it_makes_no_difference_whether_a_multiplier_is_written_as_3_or_3_0() -> None:
    hashes = {replace(PLAIN, retry=RetryPolicy(multiplier=each)).exact_version for each in (3, 3.0)}

    assert len(hashes) == 1


def test_the_hash_of_a_declaration_is_the_same_in_every_release() -> None:
    """A change here strands the turns that wait in users' installations: see docs/adr/0007."""
    agent = Agent(
        id="support",
        instructions="Help.",
        model="openai/gpt",
        tools=[common],
        retry=RetryPolicy(max_retries=3, initial_delay=timedelta(milliseconds=1_500)),
        limits=Limits(max_steps=50),
    )

    assert PLAIN.exact_version == "h-ee36d5370501"
    assert agent.exact_version == "h-96ac78b250f2"


def test_the_hash_is_the_same_in_every_process() -> None:
    """Python orders sets of strings anew in each process."""
    program = (
        "from tests.agents.test_versions import PLAIN, common, replace\n"
        "print(replace(PLAIN, tools=[common]).declaration_hash)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}

    said = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )

    assert said.stdout.strip() == replace(PLAIN, tools=[common]).declaration_hash


def test_the_built_in_agent_names_no_model_and_keeps_its_version() -> None:
    agent = builtin_agent(demo_tools())

    assert (agent.id, agent.model, agent.version) == ("assistant", None, None)
    assert agent.exact_version == builtin_agent(demo_tools()).exact_version == "h-7f146c7260de"
