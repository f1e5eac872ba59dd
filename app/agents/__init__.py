"""Agents as users declare them: `from app.agents import Agent, Hooks, Limits, RetryPolicy`."""

from app.agents.catalog import Catalog
from app.agents.declaration import Agent
from app.agents.errors import (
    AgentDeclarationError,
    AgentDeclaredTwice,
    AgentError,
    AgentsNotLoadedError,
    AgentVersionChanged,
)
from app.agents.loading import load_declared
from app.ports import (
    Ask,
    GoOn,
    Hooks,
    ModelAnswer,
    ModelRequest,
    NotDone,
    Run,
    RunError,
    ToolOutput,
)
from app.turn.agent import Limits, RetryPolicy
from app.turn.transcript import Outcome, ToolCall, UserMessage, text_of

__all__ = [
    "Agent",
    "AgentDeclarationError",
    "AgentDeclaredTwice",
    "AgentError",
    "AgentVersionChanged",
    "AgentsNotLoadedError",
    "Ask",
    "Catalog",
    "GoOn",
    "Hooks",
    "Limits",
    "ModelAnswer",
    "ModelRequest",
    "NotDone",
    "Outcome",
    "RetryPolicy",
    "Run",
    "RunError",
    "ToolCall",
    "ToolOutput",
    "UserMessage",
    "load_declared",
    "text_of",
]
