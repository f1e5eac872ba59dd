"""An agent's policy: asked about each call before its tool is entered, and it says one of three.

It fails closed (T41, case 99): a policy that raises, takes longer than 30 seconds or says anything
else ends the turn as FAILED, `policy_failed`, and the tool is not entered.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.ports.suspensions import bounded
from app.turn.ids import AgentId, AgentVersion, CallId, ConversationId, TenantId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCall:
    """A call that the model asks for, with arguments that fit its tool."""

    tool_name: str
    arguments: Mapping[str, Any]
    """As the model gave them; a copy of the policy's own."""
    call_id: CallId
    turn_id: TurnId
    conversation_id: ConversationId
    tenant_id: TenantId
    agent_id: AgentId
    agent_version: AgentVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """The call may begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequireApproval:
    """Somebody has to approve the call first."""

    message: str | None = None
    """Why, for whoever decides; at most 8,000 characters are kept."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", bounded(self.message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """The call may not begin: the model is told so and goes on (T39).

    Raises:
        ValueError: the code or the message says nothing.
    """

    code: str
    """For programs, such as `over_limit`; at most 64 characters are kept."""
    message: str
    """For the model; at most 8,000 characters are kept."""

    def __post_init__(self) -> None:
        code, message = bounded(self.code), bounded(self.message)
        if code is None or message is None:
            wrong = "a denial needs a code and a message"
            raise ValueError(wrong)
        object.__setattr__(self, "code", code[:64])
        object.__setattr__(self, "message", message)


Policy: TypeAlias = Callable[[PolicyCall], Awaitable[Allow | RequireApproval | Deny]]
