"""The last look before a tool is entered: what runs is what somebody has approved.

The core begins no call without its approval, and nothing changes a call's arguments once they are
stored; but hooks stand between the two and the tool, and code has faults. What is entered with
other arguments than those that were shown is a fault of ours or of a hook: the turn fails.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.ports import Tool, ToolContext, ToolOutput
from app.ports.fault_points import around
from app.turn.agent import ToolSpec
from app.turn.waits import InputNeeded, Unusable, fingerprint_of


class NotApprovedError(Exception):
    """A tool was about to be entered with what nobody has approved."""


def guarded(tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
    """The tools, each behind that look."""
    return {name: _GuardedTool(tool) for name, tool in tools.items()}


def _by_effect(tool: Tool, _arguments: str, _context: ToolContext) -> str:
    return f"tool.{tool.spec.effect.value}"


@dataclass(frozen=True, slots=True)
class _GuardedTool:
    tool: Tool

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    def look_at(self, arguments: str) -> InputNeeded | Unusable | None:
        return self.tool.look_at(arguments)

    @around(_by_effect)
    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        approved = {each.fingerprint for each in context.approvals if each.stage == "policy"}
        needs_approval = bool(approved) or self.spec.needs_approval
        if needs_approval and fingerprint_of(self.spec.name, arguments) not in approved:
            wrong = f"tool {self.spec.name!r} was to be entered with what nobody has approved"
            raise NotApprovedError(wrong)
        return await self.tool.run(arguments, context)
