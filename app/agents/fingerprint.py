"""The hash of a declaration: the same for the same words, in every process and release.

What is not written is no part of it. A policy or a limit at its default therefore adds nothing,
so that a later release may add options without changing the hash of agents that do not use them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from hashlib import sha256

from app.ports import Hooks
from app.turn.agent import Limits, OnError, OnModelFailure, RetryPolicy, ToolSpec


def declaration_hash(  # noqa: PLR0913 - one for each part of a declaration
    *,
    agent_id: str,
    instructions: str,
    model: str | None,
    tools: Sequence[ToolSpec],
    retry: RetryPolicy,
    limits: Limits,
    on_model_failure: OnModelFailure = "wait",
    output_schema: str | None = None,
    interruption_text: Mapping[str, str],
    hooks: Hooks | None = None,
) -> str:
    """SHA-256, as 64 hex digits, of the declaration in canonical JSON."""
    written: dict[str, object] = {
        "id": agent_id,
        "instructions": instructions,
        "model": model,
        "tools": [_tool(each) for each in tools],
        "retry": _unlike(RetryPolicy(), retry),
        "limits": _unlike(Limits(), limits),
    }
    if on_model_failure != "wait":
        written["onModelFailure"] = on_model_failure
    if output_schema is not None:
        written["output"] = json.loads(output_schema)
    if interruption_text:
        written["interruptionText"] = dict(interruption_text)
    if hooks is not None:  # by name: what they do is code, as what is inside a tool
        written["hooks"] = f"{type(hooks).__module__}.{type(hooks).__qualname__}"
    return sha256(_canonical(written).encode(errors="surrogatepass")).hexdigest()


def _tool(spec: ToolSpec) -> dict[str, object]:
    written: dict[str, object] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": json.loads(spec.parameters),
        "effect": spec.effect.value,
    }
    if spec.on_error is not OnError.TO_MODEL:  # as for the agent: what is not said is left out
        written["onError"] = spec.on_error.value
        written["retry"] = _unlike(RetryPolicy(), spec.retry)
    if spec.block_following:
        written["blockFollowing"] = True
    return written


def _unlike(default: RetryPolicy | Limits, written: RetryPolicy | Limits) -> dict[str, object]:
    values = {each.name: getattr(written, each.name) for each in fields(written)}
    return {
        name: _plain(value) for name, value in values.items() if value != getattr(default, name)
    }


def _plain(value: object) -> object:
    """Spans in microseconds; 3.0 as 3, so that it makes no difference which was written."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
