"""Agents as users declare them: `from app.agents import Agent, Form, Hooks, Limits`."""

from app.agents.catalog import Catalog
from app.agents.declaration import Agent
from app.agents.errors import (
    AgentDeclarationError,
    AgentDeclaredTwice,
    AgentError,
    AgentsNotLoadedError,
    AgentVersionChanged,
)
from app.agents.forms import Form
from app.agents.loading import load_declared
from app.ports import (
    Allow,
    Ask,
    Deny,
    GoOn,
    Hooks,
    ModelAnswer,
    ModelRequest,
    NotDone,
    PolicyCall,
    RequireApproval,
    Run,
    RunError,
    ToolOutput,
)
from app.turn.agent import Changeable, HistoryWindow, Limits, RetryPolicy, WaitPolicy
from app.turn.failures import FailureType
from app.turn.transcript import Outcome, ToolCall, UserMessage, text_of

__all__ = [
    "Agent",
    "AgentDeclarationError",
    "AgentDeclaredTwice",
    "AgentError",
    "AgentVersionChanged",
    "AgentsNotLoadedError",
    "Allow",
    "Ask",
    "Catalog",
    "Changeable",
    "Deny",
    "FailureType",
    "Form",
    "GoOn",
    "HistoryWindow",
    "Hooks",
    "Limits",
    "ModelAnswer",
    "ModelRequest",
    "NotDone",
    "Outcome",
    "PolicyCall",
    "RequireApproval",
    "RetryPolicy",
    "Run",
    "RunError",
    "ToolCall",
    "ToolOutput",
    "UserMessage",
    "WaitPolicy",
    "load_declared",
    "text_of",
]
