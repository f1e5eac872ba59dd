"""Tools that are only declared; nothing in these tests runs one."""

from dataclasses import dataclass

from app.ports import ToolContext, ToolOutput
from app.turn.agent import Effect, ToolSpec
from app.turn.transcript import Outcome


@dataclass(frozen=True)
class DeclaredTool:
    spec: ToolSpec

    def look_at(self, arguments: str) -> None:
        del arguments

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        del context
        return ToolOutput(outcome=Outcome.COMPLETED, content=arguments)


def a_tool(
    name: str = "search",
    *,
    description: str = "Find things.",
    parameters: str = '{"type":"object","properties":{}}',
    effect: Effect = Effect.READS,
    block_following: bool = False,
) -> DeclaredTool:
    spec = ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        effect=effect,
        block_following=block_following,
    )
    return DeclaredTool(spec)
