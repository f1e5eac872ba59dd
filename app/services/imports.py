"""Histories from elsewhere: a conversation that begins with what was said in another service.

Any order is taken. What is damaged is kept, and left out where a request is made of it
(`app.turn.requestable`). Nothing of it ever runs: a call without a result is reported (T113).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from app.ports import Conversation, ConversationSummary
from app.services.deps import Caller, Services
from app.services.drafts import title_of
from app.services.errors import PayloadInvalid
from app.services.opening import current_agent
from app.turn.ids import AgentId, CallId, ConversationId, MessageId
from app.turn.transcript import (
    AssistantMessage,
    Message,
    Outcome,
    StopReason,
    ToolCall,
    ToolResult,
    UserMessage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """A conversation as it was brought along."""

    history: Sequence[Message]
    agent_id: AgentId | None
    title: str | None


async def import_history(
    services: Services, caller: Caller, conversation_id: ConversationId, given: Import
) -> ConversationSummary:
    """The new conversation, with the history as its first messages.

    Raises:
        PayloadInvalid: the agent is unknown.
        KeyTaken: a request with the same key took effect first.
    """
    agent = current_agent(services, given.agent_id)
    history = as_brought(services, given.history)
    now = services.clock()
    conversation = Conversation(
        tenant_id=caller.principal.tenant_id,
        conversation_id=conversation_id,
        owner_id=caller.principal.actor_id,
        agent_id=agent.agent.agent_id,
        title=title_in(history) if given.title is None else given.title,
        created_at=now,
        updated_at=now,
    )
    made = ConversationSummary(conversation=conversation, active=None, last=None)
    audit = caller.entry("PUT_CONVERSATION", conversation_id=conversation_id)
    kept = await caller.kept(made)
    if not await services.conversations.put(conversation, audit, kept, history):
        raise PayloadInvalid(f"there is a conversation {conversation_id!r} already")
    return made


def as_brought(services: Services, history: Iterable[Message]) -> Sequence[Message]:
    """The messages as another conversation has them: each of a user's under an id of its own.

    A result whose tool is not named has that of the last call by its id.
    """
    names: dict[CallId, str] = {}
    brought: list[Message] = []
    for message in history:
        match message:
            case UserMessage():
                message_id = MessageId(services.new_id("msg"))
                brought.append(replace(message, message_id=message_id))
            case ToolResult(tool_name="", call_id=call_id):
                brought.append(replace(message, tool_name=names.get(call_id, "")))
            case AssistantMessage(tool_calls=calls):
                names |= {call.call_id: call.tool_name for call in calls}
                brought.append(message)
            case _:
                brought.append(message)
    return brought


def brought_answer(
    text: str | None,
    calls: Sequence[ToolCall],
    stop_reason: StopReason | None,
    reasoning: str | None,
) -> AssistantMessage:
    """A model's message; one that does not say why it ended has ended normally."""
    normal = StopReason.TOOL_USE if calls else StopReason.END_TURN
    return AssistantMessage(
        text=text or "",
        tool_calls=tuple(calls),
        stop_reason=stop_reason or normal,
        reasoning=reasoning or "",
    )


def brought_call(
    call_id: str | None, tool_name: str, arguments: Mapping[str, Any] | str | None
) -> ToolCall:
    """A call, with its problem where its arguments are no JSON object: they are kept, not sent.

    Raises:
        PayloadInvalid: the arguments are nested too deep to be written down.
    """
    if isinstance(arguments, str):
        text, is_object = arguments, _is_object(arguments)
    else:
        text, is_object = _written(arguments or {}), True
    problem = None if is_object else "The arguments are not a JSON object."
    return ToolCall(
        call_id=CallId(call_id or ""), tool_name=tool_name, arguments=text, problem=problem
    )


def _written(arguments: Mapping[str, Any]) -> str:
    try:
        return json.dumps(arguments, ensure_ascii=False)
    except RecursionError as error:
        raise PayloadInvalid("the arguments of a tool call are nested too deep") from error


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def brought_result(call_id: str | None, content: str, *, is_error: bool = False) -> ToolResult:
    """A tool's result; of which tool, its call says."""
    outcome = Outcome.ERROR if is_error else Outcome.COMPLETED
    return ToolResult(call_id=CallId(call_id or ""), tool_name="", outcome=outcome, content=content)


def title_in(history: Iterable[Message]) -> str:
    """The beginning of what a user has said first; empty where none has said anything."""
    said = (title_of(message.content) for message in history if isinstance(message, UserMessage))
    return next((title for title in said if title), "")
