"""What the Anthropic messages API refuses a request for; an oracle for tests.

Thinking is signed with an HMAC over its exact characters and the calls that follow it. A signed
block that was changed, moved or separated from its calls is refused, as the real thing does.
"""

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Block: TypeAlias = Mapping[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_KEYS = {
    "text": {"type", "text"},
    "image": {"type", "source"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content", "is_error"},
    "server_tool_use": {"type", "id", "name", "input"},
    "web_search_tool_result": {"type", "tool_use_id", "content"},
}
_ROLES = {
    "user": {"text", "image", "tool_result"},
    "assistant": {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "web_search_tool_result",
    },
}
_HIDDEN = ("thinking", "redacted_thinking")


def signature(thinking: str, call_ids: Sequence[str]) -> str:
    """What the strict provider signs its thinking with."""
    said = json.dumps([thinking, list(call_ids)]).encode()
    return hmac.new(b"of the provider", said, "sha256").hexdigest()


def fault(body: Mapping[str, Any], *, paused: Sequence[Block] | None = None) -> str | None:
    """Why this request would be refused, or `None`.

    Behind an answer that paused with these blocks it must end with them, as they were.
    """
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens: Field required"
    if "system" in body and not body["system"].strip():
        return "system: text must not be empty"
    turns: list[Block] = body["messages"]
    roles = [turn["role"] for turn in turns]
    if paused is not None:
        if turns[-1] != {"role": "assistant", "content": list(paused)}:
            return "an answer that paused must come back as it was, with nothing behind it"
        turns, roles = turns[:-1], roles[:-1]
    if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
        return f"messages: roles must take turns, from user to user, not {roles}"
    faults = (_fault_of_turn(turn, turns[n - 1] if n else None) for n, turn in enumerate(turns))
    return next((found for found in faults if found), None) or _fault_of_calls(body, turns)


def _fault_of_calls(body: Mapping[str, Any], turns: Sequence[Block]) -> str | None:
    calls = [block for turn in turns for block in turn["content"] if block["type"] == "tool_use"]
    ids = [call["id"] for call in calls]
    if len(ids) != len(set(ids)) or not all(map(_ID.fullmatch, ids)):
        return f"tool_use ids must be unique and plain, not {ids}"
    declared = {tool["name"] for tool in body.get("tools", ())}
    if calls and not declared:
        return "tools must be defined where a history uses them"
    answered = turns[-1]["content"]
    open_ids = _calls_of(turns[-2]) if len(turns) > 1 else []
    results = [block for block in answered if block["type"] == "tool_result"]
    if len(results) != len(open_ids):
        return f"tool_use ids {open_ids} were found without tool_result blocks behind them"
    return None


def _fault_of_turn(turn: Block, before: Block | None) -> str | None:
    blocks: list[Block] = turn["content"]
    if not blocks:
        return f"{turn['role']}: content must not be empty"
    found = next((f for block in blocks if (f := _fault_of_block(turn["role"], block))), None)
    if found:
        return found
    wanted = _calls_of(before) if before is not None and turn["role"] == "user" else []
    kinds = [block["type"] for block in blocks]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if results != wanted or kinds[: len(results)] != ["tool_result"] * len(results):
        return f"the results of {wanted} must come first and in order, not {results}"
    return _fault_of_thinking(blocks)


def _fault_of_block(role: str, block: Block) -> str | None:
    kind = block["type"]
    if kind not in _ROLES[role] or not set(block) <= _KEYS[kind]:
        return f"{role}: no such block {block}"
    if kind == "text" and not block["text"].strip():
        return "text content blocks must contain non-whitespace text"
    if kind == "tool_use" and not isinstance(block["input"], dict):
        return "tool_use.input: Input should be a valid dictionary"
    return None


def _fault_of_thinking(blocks: Sequence[Block]) -> str | None:
    """Thinking stands before everything it led to, and its signature covers those calls."""
    kinds = [block["type"] for block in blocks]
    for at, block in enumerate(blocks):
        if block["type"] != "thinking":
            continue
        if any(kind not in _HIDDEN for kind in kinds[:at]):
            return "thinking must stand in front"
        call_ids = [later["id"] for later in blocks[at:] if later["type"] == "tool_use"]
        if block.get("signature") != signature(block["thinking"], call_ids):
            return "Invalid `signature` in `thinking` block"
    return None


def _calls_of(turn: Block) -> list[str]:
    return [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
