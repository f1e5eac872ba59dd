"""Changes of how a turn goes on: whether the caller may make them, and how they are recorded."""

import json

from app.services.deps import Caller
from app.services.errors import Forbidden, PayloadInvalid
from app.turn.agent import Agent, Limits
from app.turn.changes import Changes, is_allowed, may_be_named


def require_allowed(caller: Caller, agent: Agent, changes: Changes) -> None:
    """Nothing, where the agent's version lets the caller make all of these changes.

    Raises:
        Forbidden: one of them is not for this caller, or for nobody.
        PayloadInvalid: a model is named that may not be.
    """
    by_operator = caller.principal.is_operator
    for name in changes.names:
        if not is_allowed(agent, name, by_operator=by_operator):
            is_for_operators = is_allowed(agent, name, by_operator=True)
            who = "only an operator may change it" if is_for_operators else "nobody may change it"
            raise Forbidden(f"changes.{name}: for a turn of this agent {who}")
    if changes.model is not None and not may_be_named(agent, changes.model):
        named = ", ".join(agent.changeable.models or ())
        raise PayloadInvalid(f"changes.model: this agent can be asked of {named or 'no other'}")


def recorded(changes: Changes) -> str | None:
    """The changes as JSON, by the names that the API has for them; `None` where there are none."""
    said = {
        "model": changes.model,
        "maxOutputTokens": changes.max_output_tokens,
        "compact": changes.compact or None,
        "keepTurns": changes.keep_turns,
        "limits": None if changes.limits is None else _limits(changes.limits),
    }
    kept = {name: value for name, value in said.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False) if kept else None


def _limits(limits: Limits) -> dict[str, object]:
    values = {
        "maxIterations": limits.max_iterations,
        "maxSteps": limits.max_steps,
        "maxDurationSeconds": limits.max_duration and limits.max_duration.total_seconds(),
        "maxInputTokens": limits.max_input_tokens,
        "maxOutputTokens": limits.max_output_tokens,
        "maxTotalTokens": limits.max_total_tokens,
        "maxToolCalls": limits.max_tool_calls,
    }
    return {name: value for name, value in values.items() if value is not None}
