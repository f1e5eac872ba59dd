"""The hash of a declaration: the same for the same words, in every process and release.

What is not written is no part of it. A policy or a limit at its default therefore adds nothing,
so that a later release may add options without changing the hash of agents that do not use them.
"""

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from hashlib import sha256
from typing import TypeAlias

from app.agents.wait_rules import name_of_policy
from app.ports import FrozenForm, Hooks, Policy
from app.turn.agent import (
    Agent,
    Changeable,
    HistoryWindow,
    Limits,
    OnError,
    RetryPolicy,
    ToolSpec,
    WaitPolicy,
)

_MAX_CONTINUATIONS = next(
    each.default for each in fields(Agent) if each.name == "max_continuations"
)


def declaration_hash(
    agent: Agent, hooks: Hooks | None, policy: Policy | None, forms: Sequence[FrozenForm]
) -> str:
    """SHA-256, as 64 hex digits, of the declaration in canonical JSON, but for its version."""
    written: dict[str, object] = {
        "id": agent.agent_id,
        "instructions": agent.instructions,
        "model": agent.model,
        "tools": [_tool(each) for each in agent.tools],
        "retry": _unlike(RetryPolicy(), agent.retry),
        "limits": _unlike(Limits(), agent.limits),
    }
    if agent.on_model_failure != "wait":
        written["onModelFailure"] = agent.on_model_failure
    if agent.output_schema is not None:
        written["output"] = json.loads(agent.output_schema)
    if agent.interruption_text:
        written["interruptionText"] = dict(agent.interruption_text)
    if hooks is not None:  # by name: what they do is code, as what is inside a tool
        written["hooks"] = f"{type(hooks).__module__}.{type(hooks).__qualname__}"
    if policy is not None:
        written["policy"] = name_of_policy(policy)
    if forms:
        written["forms"] = [_form(each) for each in forms]
    written |= {**_models(agent), **_waits(agent), **_answers(agent), **_crashes(agent)}
    return sha256(_canonical(written).encode(errors="surrogatepass")).hexdigest()


def _crashes(agent: Agent) -> dict[str, object]:
    written: dict[str, object] = {}
    if agent.on_crash != "continue":
        written["onCrash"] = agent.on_crash
    if agent.never_replay:
        written["neverReplay"] = True
    return written


def _answers(agent: Agent) -> dict[str, object]:
    written: dict[str, object] = {}
    if agent.on_invalid_request != "fail":
        written["onInvalidRequest"] = agent.on_invalid_request
    if agent.partial_output != "keep":
        written["partialOutput"] = agent.partial_output
    if agent.on_truncated != "complete":
        written["onTruncated"] = agent.on_truncated
    if agent.max_continuations != _MAX_CONTINUATIONS:
        written["maxContinuations"] = agent.max_continuations
    if agent.leave_out:
        written["leaveOut"] = agent.leave_out
    return written


def _models(agent: Agent) -> dict[str, object]:
    written: dict[str, object] = {}
    if agent.fallbacks:
        written["fallbacks"] = list(agent.fallbacks)
        written["fallbackOn"] = sorted(agent.fallback_on)
    if agent.on_context_full != "compact_then_wait":
        written["onContextFull"] = agent.on_context_full
    if agent.history != HistoryWindow():
        written["history"] = _unlike(HistoryWindow(), agent.history)
    if agent.changeable != Changeable():
        written["changes"] = _unlike(Changeable(), agent.changeable)
    return written


def _waits(agent: Agent) -> dict[str, object]:
    written: dict[str, object] = {}
    if agent.open_waits != "sequential":
        written["openWaits"] = agent.open_waits
    if agent.strict_forms:
        written["strictForms"] = True
    if not agent.requester_may_approve:
        written["requesterMayApprove"] = False
    if agent.wait != WaitPolicy():
        written["wait"] = _unlike(WaitPolicy(), agent.wait)
    return written


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
    if spec.needs_approval:
        written["needsApproval"] = True
    if spec.wait is not None:
        written["wait"] = _unlike(WaitPolicy(), spec.wait)
    if spec.kind != "local":
        written["kind"] = spec.kind
    if spec.kind == "external":
        written["result"] = {"maxBytes": spec.max_result_bytes, "onOversize": spec.on_oversize}
    return written | _when_lost(spec)


def _when_lost(spec: ToolSpec) -> dict[str, object]:
    written: dict[str, object] = {}
    if spec.on_unknown is not None:
        written["onUnknown"] = spec.on_unknown.value
    if spec.after_interrupt is not None:
        written["afterInterrupt"] = spec.after_interrupt
    if spec.has_probe:  # what it does is code
        written["probe"] = True
    return written


def _form(form: FrozenForm) -> dict[str, object]:
    """Its schema as text: the order of its fields is the order in which it shows them."""
    return {"key": form.key, "title": form.title, "schema": form.schema}


_Part: TypeAlias = RetryPolicy | Limits | WaitPolicy | HistoryWindow | Changeable


def _unlike(default: _Part, written: _Part) -> dict[str, object]:
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
