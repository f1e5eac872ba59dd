"""What docs/agents.md shows is what happens."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from app.agents import (
    Agent,
    Allow,
    Ask,
    Catalog,
    Deny,
    Hooks,
    ModelRequest,
    NotDone,
    PolicyCall,
    RequireApproval,
    Run,
    ToolCall,
    ToolOutput,
    UserMessage,
    load_declared,
)
from app.ports import Policy, Tool
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
from app.turn.waits import Approval, ApprovalNeeded, InputNeeded
from tests.tools.calls import a_context, approved

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
    space = the_page()
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


async def test_the_tools_of_the_page_wait_for_what_it_says() -> None:
    space = the_page()
    pay, send = cast("Tool", space["pay_invoice"]), cast("Tool", space["send_parcel"])
    forms = [form.frozen for form in cast("Agent", space["sender"]).forms]
    content = {"invoice": "INV-1", "cents": 1_250_000}
    finance, compliance = (
        approved({"level": level, **content}, tool_name="pay_invoice")
        for level in ("finance", "compliance")
    )

    async def paid(*approvals: Approval) -> ToolOutput:
        context = a_context(tool_name="pay_invoice", approvals=approvals)
        return await pay.run('{"invoice_id":"INV-1"}', context)

    assert isinstance((await paid()).needs, ApprovalNeeded)
    assert isinstance((await paid(finance)).needs, ApprovalNeeded)
    assert (await paid(finance, compliance)).content == "Paid 1250000 cents."

    asking = await send.run('{"sku":"TP-1"}', a_context(forms=forms))
    assert isinstance(asking.needs, InputNeeded)
    filled_in = a_context(forms=forms, submissions=({"street": "Elm Street 5", "city": "Bonn"},))
    sent = await send.run('{"sku":"TP-1"}', filled_in)
    assert sent.content == "Sent TP-1 to Elm Street 5, Bonn."


async def test_the_policy_of_the_page_says_one_of_three_things() -> None:
    policy = cast("Policy", the_page()["house_policy"])

    async def verdict(tool_name: str, **arguments: object) -> object:
        return await policy(
            PolicyCall(
                tool_name=tool_name,
                arguments=arguments,
                call_id=CallId("A"),
                turn_id=TurnId("t"),
                conversation_id=ConversationId("c"),
                tenant_id=TenantId("default"),
                agent_id=AgentId("guarded"),
                agent_version=AgentVersion("1"),
            )
        )

    assert await verdict("order_status", order_id="1") == Allow()
    assert await verdict("refund", cents=5_000) == Allow()
    assert await verdict("refund", cents=5_001) == RequireApproval(message="A refund above 50.00.")
    assert isinstance(await verdict("refund", cents=50_001), Deny)


def the_page() -> dict[str, object]:
    """What the page's blocks define, one after the other."""
    space: dict[str, object] = {}
    for _, block in BLOCKS:
        exec(compile(block, PAGE.name, "exec"), space)  # noqa: S102
    return space


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
