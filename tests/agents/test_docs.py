"""What docs/agents.md shows is what happens."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from app.agents import (
    Agent,
    Ask,
    Catalog,
    Hooks,
    ModelRequest,
    NotDone,
    Run,
    ToolCall,
    ToolOutput,
    UserMessage,
    load_declared,
)
from app.turn.ids import (
    AgentId,
    AgentVersion,
    CallId,
    ConversationId,
    MessageId,
    TenantId,
    TurnId,
)
from app.turn.status import Status
from app.turn.transcript import Outcome, TextPart
from tests.tools.calls import a_context

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_every_block_of_the_page_is_python() -> None:
    """A block in another language would be one that nothing runs."""
    assert len(BLOCKS) > 5
    assert {language for language, _ in BLOCKS} == {"python"}


def test_the_first_agent_takes_fifteen_lines() -> None:
    lines = [line for line in BLOCKS[0][1].splitlines() if line.strip()]
    assert len(lines) <= 15


async def test_the_first_agent_can_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "firstcompany").mkdir()
    (tmp_path / "firstcompany" / "agents.py").write_text(BLOCKS[0][1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    loaded = Catalog(load_declared("firstcompany.agents:agents")).current(AgentId("support"))
    assert loaded is not None
    output = await loaded.tools["order_status"].run('{"order_id": "88121"}', a_context())

    assert output.outcome is Outcome.COMPLETED
    assert output.content == "Order 88121 left the warehouse this morning."


def test_the_blocks_run_one_after_the_other() -> None:
    space: dict[str, object] = {}

    for number, (_, block) in enumerate(BLOCKS, start=1):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), space)  # noqa: S102

    listed = cast("list[Agent]", space["agents"])
    assert [each.version for each in listed] == ["1", "2"]


async def test_the_hooks_of_the_page_do_what_it_says() -> None:
    space: dict[str, object] = {}
    for _, block in BLOCKS:
        exec(compile(block, PAGE.name, "exec"), space)  # noqa: S102
    house, patient = cast("type[Hooks]", space["House"])(), cast("type[Hooks]", space["Patient"])()
    call = ToolCall(call_id=CallId("A"), tool_name="refund", arguments="{}")

    async def go_on(call: ToolCall) -> ToolOutput:
        return ToolOutput(outcome=Outcome.COMPLETED, content=f"order 88121 by {call.tool_name}")

    output = await house.around_tool(a_run(), call, go_on)
    assert output.content == "order …121 by refund"
    with pytest.raises(NotDone):
        await house.around_tool(a_run(tenant="other"), call, go_on)

    request = ModelRequest(model="m", instructions="Help.", messages=(), tools=(), attempt=1)
    assert await house.before_model(a_run(), request) is None
    changed = await house.before_model(a_run(conversation="vip-1"), request)
    assert changed == replace(request, instructions="Help. Be generous.")

    message = UserMessage(message_id=MessageId("m"), content=(TextPart(text="Hm."),))
    with pytest.raises(Ask, match="say a little more"):
        await patient.on_message(a_run(), message)
    await patient.on_message(a_run(is_resume=True), message)


def a_run(*, tenant: str = "default", conversation: str = "c", is_resume: bool = False) -> Run:
    return Run(
        turn_id=TurnId("t"),
        conversation_id=ConversationId(conversation),
        tenant_id=TenantId(tenant),
        agent_id=AgentId("careful"),
        agent_version=AgentVersion("1"),
        is_resume=is_resume,
        status=Status.RUNNING,
    )
