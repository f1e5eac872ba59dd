"""`GET /agents`."""

from typing import Any

import orjson
from fastapi import APIRouter

from app.routers.deps import CallerDep, ServicesDep
from app.routers.wire import Output
from app.turn.agent import Agent, Effect

router = APIRouter(prefix="/agents", tags=["agents"])


class ToolOutputSchema(Output):
    name: str
    description: str
    effect: Effect


class AgentOutput(Output):
    agent_id: str
    version: str
    model: str | None
    tools: list[ToolOutputSchema]
    output_schema: dict[str, Any] | None
    """The JSON Schema of a turn's `output`, where the agent declares one."""


class AgentList(Output):
    items: list[AgentOutput]
    next_cursor: str | None


@router.get("")
async def read_agents(services: ServicesDep, caller: CallerDep) -> AgentList:
    """The current version of every agent, the default one first."""
    del caller  # it must be somebody
    return AgentList(items=[_agent(agent) for agent in services.catalog.all()], next_cursor=None)


def _agent(agent: Agent) -> AgentOutput:
    return AgentOutput(
        agent_id=agent.agent_id,
        version=agent.version,
        model=agent.model,
        output_schema=None if agent.output_schema is None else orjson.loads(agent.output_schema),
        tools=[ToolOutputSchema.model_validate(t, from_attributes=True) for t in agent.tools],
    )
