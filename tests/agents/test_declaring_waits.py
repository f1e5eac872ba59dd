"""Forms, policies and waits of an agent: what can be declared, and that it makes a version."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, cast

import pytest
from pydantic import BaseModel, Field

from app.agents import (
    Agent,
    AgentDeclarationError,
    Allow,
    Deny,
    Form,
    PolicyCall,
    RequireApproval,
    WaitPolicy,
)
from app.ports import FrozenForm
from app.ports.schema_check import problems_in
from app.tools import external_tool, request_user_input, tool
from app.turn.agent import Agent as CoreAgent


class Address(BaseModel):
    """Where it goes."""

    street: Annotated[str, Field(min_length=1)]
    floor: int | None = None


async def allowing(call: PolicyCall) -> Allow | RequireApproval | Deny:
    del call
    return Allow()


async def denying(call: PolicyCall) -> Allow | RequireApproval | Deny:
    del call
    return Deny(code="never", message="Never.")


class Judge:
    async def __call__(self, call: PolicyCall) -> Allow | RequireApproval | Deny:
        return await allowing(call)


PLAIN = Agent(id="support", instructions="Help.")
ADDRESS = Form(key="address", title="Where to?", schema=Address)


def refusal_of(**declared: object) -> str:
    with pytest.raises(AgentDeclarationError) as refused:
        cast("Any", Agent)(**{"id": "support", "instructions": "", **declared})
    return str(refused.value)


def core(**declared: object) -> CoreAgent:
    return replace(PLAIN, **cast("Any", declared)).loaded().agent


# --- Agents ---------------------------------------------------------------------------------------


def test_an_agent_that_says_nothing_waits_for_one_thing_at_a_time_and_for_ever() -> None:
    said = core()

    assert not said.has_policy
    assert said.open_waits == "sequential"
    assert not said.strict_forms
    assert said.requester_may_approve
    assert said.wait == WaitPolicy(timeout=None, on_expiry="keep")


def test_the_core_knows_what_was_declared() -> None:
    wait = WaitPolicy(timeout=timedelta(hours=1), on_expiry="cancel")
    said = core(
        policy=allowing,
        open_waits="together",
        strict_forms=True,
        requester_may_approve=False,
        wait=wait,
    )

    assert (said.has_policy, said.open_waits, said.strict_forms) == (True, "together", True)
    assert (said.requester_may_approve, said.wait) == (False, wait)


def test_the_runner_has_the_policy_and_the_forms_by_their_keys() -> None:
    loaded = replace(PLAIN, policy=allowing, forms=[ADDRESS]).loaded()

    assert loaded.policy is allowing
    assert loaded.forms == {"address": ADDRESS.frozen}


def test_the_model_is_shown_the_forms_by_request_user_input() -> None:
    loaded = replace(PLAIN, tools=[request_user_input], forms=[ADDRESS]).loaded()

    assert '"enum":["address"]' in loaded.agent.tools[0].parameters
    assert loaded.tools["request_user_input"].spec == loaded.agent.tools[0]


@pytest.mark.parametrize("policy", [allowing, Judge(), partial(allowing)])
def test_a_policy_is_whatever_can_be_awaited(policy: object) -> None:
    assert core(policy=policy).has_policy


@pytest.mark.parametrize(
    ("declared", "rule"),
    [
        ({"policy": str}, "policy must be a function defined with 'async def'"),
        ({"policy": Allow()}, "policy must be a function defined with 'async def'"),
        ({"policy": Judge}, "policy must be a function defined with 'async def'"),
        ({"policy": "allow"}, "policy must be a function defined with 'async def', not 'allow'"),
        ({"open_waits": "all"}, "open_waits must be 'sequential' or 'together', not 'all'"),
        ({"open_waits": None}, "open_waits must be 'sequential' or 'together', not None"),
        ({"strict_forms": 1}, "strict_forms must be True or False, not 1"),
        ({"never_replay": None}, "never_replay must be True or False, not None"),
        ({"requester_may_approve": "no"}, "requester_may_approve must be True or False, not 'no'"),
        ({"wait": None}, "wait must be a WaitPolicy, not None"),
        ({"wait": timedelta(1)}, "wait must be a WaitPolicy"),
        ({"wait": WaitPolicy(timeout=timedelta(days=-1))}, "wait.timeout must be a timedelta"),
        ({"wait": WaitPolicy(on_expiry=cast("Any", ""))}, "wait.on_expiry must be one of 'keep'"),
        ({"forms": None}, "forms must be a list of forms, not None"),
        ({"forms": "address"}, "forms must be a list of forms, not 'address'"),
        ({"forms": [Address]}, "forms must be values of app.agents.Form"),
        ({"forms": [ADDRESS, ADDRESS]}, "two of its forms have the key 'address'"),
    ],
)
def test_a_part_out_of_its_range_is_refused_naming_the_agent_and_the_range(
    declared: dict[str, object], rule: str
) -> None:
    said = refusal_of(**declared)

    assert said.startswith("agent 'support': ")
    assert rule in said


# --- Forms ----------------------------------------------------------------------------------------


def test_a_form_is_a_json_schema_or_a_model() -> None:
    written = Form(
        key="address",
        schema={"type": "object", "properties": {"street": {"type": "string"}}},
    )

    assert written.frozen == FrozenForm(
        key="address",
        title=None,
        schema='{"type":"object","properties":{"street":{"type":"string"}}}',
    )
    assert problems_in(ADDRESS.frozen.schema, {"street": "Elm Street"}) == ()
    assert [each.pointer for each in problems_in(ADDRESS.frozen.schema, {"street": ""})] == [
        "/street"
    ]


def test_a_form_does_not_change_with_what_it_was_made_of() -> None:
    schema: dict[str, object] = {"type": "object"}
    form = Form(key="address", schema=schema)

    schema["required"] = ["street"]

    assert form.frozen.schema == '{"type":"object"}'


@pytest.mark.parametrize(
    ("declared", "rule"),
    [
        ({"key": "an address"}, "key must be 1 to 128 of"),
        ({"key": 5}, "key must be 1 to 128 of"),
        ({"title": " "}, "title must be a text of 1 to 200 characters"),
        ({"title": "x" * 201}, "title must be a text of 1 to 200 characters"),
        ({"title": "\ud800"}, "title must be text that UTF-8 can hold"),
        ({"schema": None}, "its schema must say"),
        ({"schema": "address"}, "schema must be a JSON Schema or a pydantic model"),
        ({"schema": Judge}, "schema must be a JSON Schema or a pydantic model"),
        ({"schema": {}}, 'its schema must say "type": "object" at its top'),
        ({"schema": {"type": "array"}}, 'its schema must say "type": "object" at its top'),
        ({"schema": list[str]}, 'its schema must say "type": "object" at its top'),
        ({"schema": {"type": "objekt"}}, "its schema cannot be used"),
        (
            {"schema": {"type": "object", "properties": {"a": {"$ref": "https://a.invalid/b"}}}},
            "its schema cannot be used",
        ),
        (
            {"schema": {"type": "object", "patternProperties": {"(?=a)b": {}}}},
            "its schema cannot be used",
        ),
    ],
)
def test_a_form_that_cannot_be_shown_is_refused(declared: dict[str, object], rule: str) -> None:
    with pytest.raises(AgentDeclarationError) as refused:
        cast("Any", Form)(**{"key": "address", "schema": Address, **declared})

    assert str(refused.value).startswith("form ")
    assert rule in str(refused.value)


# --- Versions -------------------------------------------------------------------------------------


def a_tool(**options: object) -> object:
    def look() -> None:
        """Look."""

    return cast("Any", tool)(**options)(look)


async def found(_key: str) -> None:
    """A probe that knows nothing."""


def an_external_tool(**options: object) -> object:
    def look() -> None:
        """Look."""

    return cast("Any", external_tool)(**options)(look)


@pytest.mark.parametrize(
    "declared",
    [
        {"policy": allowing},
        {"policy": denying},
        {"open_waits": "together"},
        {"strict_forms": True},
        {"requester_may_approve": False},
        {"never_replay": True},
        {"wait": WaitPolicy(timeout=timedelta(hours=1))},
        {"wait": WaitPolicy(timeout=timedelta(hours=2))},
        {"wait": WaitPolicy(on_expiry="fail")},
        {"forms": [ADDRESS]},
        {"forms": [Form(key="address", title="Whither?", schema=Address)]},
        {"forms": [Form(key="address", title="Where to?", schema={"type": "object"})]},
        {"tools": [a_tool()]},
        {"tools": [a_tool(needs_approval=True)]},
        {"tools": [a_tool(on_unknown="park")]},
        {"tools": [a_tool(on_unknown="interrupt")]},
        {"tools": [a_tool(after_interrupt="cascade")]},
        {"tools": [a_tool(probe=found)]},
        {"tools": [a_tool(wait=WaitPolicy())]},
        {"tools": [a_tool(wait=WaitPolicy(on_expiry="fail"))]},
        {"tools": [an_external_tool()]},
        {"tools": [an_external_tool(max_result_bytes=9)]},
        {"tools": [an_external_tool(on_oversize="truncate")]},
        {"tools": [request_user_input]},
        {"tools": [request_user_input], "forms": [ADDRESS]},
    ],
)
def test_whatever_is_written_otherwise_makes_another_version(declared: dict[str, object]) -> None:
    seen = [replace(PLAIN, **cast("Any", declared)).exact_version]
    others = [
        replace(PLAIN, **cast("Any", other)).exact_version
        for other in (
            {},
            {"wait": WaitPolicy(timeout=timedelta(hours=3))},
            {"tools": [a_tool(effect="reads")]},
            {"forms": [Form(key="card", schema=Address)]},
        )
    ]

    assert set(seen).isdisjoint(others)
    assert seen == [replace(PLAIN, **cast("Any", declared)).exact_version]


def test_a_policy_is_known_by_its_name() -> None:
    versions = {replace(PLAIN, policy=each).exact_version for each in (allowing, denying, Judge())}

    assert len(versions) == 3
    assert replace(PLAIN, policy=partial(denying)).exact_version in versions
    assert replace(PLAIN, policy=Judge()).exact_version in versions
