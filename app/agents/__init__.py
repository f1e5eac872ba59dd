"""Agents as users declare them: `from app.agents import Agent, Limits, RetryPolicy`."""

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
from app.turn.agent import Limits, RetryPolicy

__all__ = [
    "Agent",
    "AgentDeclarationError",
    "AgentDeclaredTwice",
    "AgentError",
    "AgentVersionChanged",
    "AgentsNotLoadedError",
    "Catalog",
    "Limits",
    "RetryPolicy",
    "load_declared",
]
