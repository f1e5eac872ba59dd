"""What the runner and the services ask of the outside, as small protocols.

A port exists where there are two implementations (a model provider and the scripted one, a local
tool and one behind HTTP) or where the arrow must point inward (the store). None is wider than its
callers need.
"""

from app.ports.model import (
    ModelClient,
    ModelDirectory,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    ResolvedModel,
    TextDelta,
)
from app.ports.records import (
    AuditEntry,
    Claim,
    ClaimedTurn,
    Command,
    Commit,
    Conversation,
    ConversationSummary,
    FoundReply,
    HistoryMessage,
    JournalRow,
    KeptReply,
    Lookup,
    Receipt,
    Scope,
    StoredMessage,
    StoredTurn,
)
from app.ports.signals import Clock, NewId, Wakeup, Wakeups
from app.ports.store import (
    AuditLog,
    ClaimLost,
    ClaimQueue,
    ConversationStore,
    KeyTaken,
    OutcomeUnknown,
    Renewals,
    ReplyStore,
    StoreUnavailable,
    TurnStore,
    VersionConflict,
)
from app.ports.tools import AgentCatalog, LoadedAgent, Tool, ToolContext, ToolOutput
from app.turn.transcript import ModelAnswer

__all__ = [
    "AgentCatalog",
    "AuditEntry",
    "AuditLog",
    "Claim",
    "ClaimLost",
    "ClaimQueue",
    "ClaimedTurn",
    "Clock",
    "Command",
    "Commit",
    "Conversation",
    "ConversationStore",
    "ConversationSummary",
    "FoundReply",
    "HistoryMessage",
    "JournalRow",
    "KeptReply",
    "KeyTaken",
    "LoadedAgent",
    "Lookup",
    "ModelAnswer",
    "ModelClient",
    "ModelDirectory",
    "ModelEvent",
    "ModelRequest",
    "NewId",
    "OutcomeUnknown",
    "ReasoningDelta",
    "Receipt",
    "Renewals",
    "ReplyStore",
    "ResolvedModel",
    "Scope",
    "StoreUnavailable",
    "StoredMessage",
    "StoredTurn",
    "TextDelta",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "TurnStore",
    "VersionConflict",
    "Wakeup",
    "Wakeups",
]
