"""Events of changes that somebody has made, and of histories that are summed up, for readers."""

from collections.abc import Mapping
from typing import Any

import orjson

from app.services.changing import recorded
from app.turn import events as e
from app.turn.changes import Changes
from app.turn.transcript import Usage


def changes_data(event: e.TurnResumed) -> Mapping[str, Any] | None:
    """What is otherwise from here on, by the names in `changes`; `None` where nothing is."""
    changes = Changes(
        model=event.model,
        max_output_tokens=event.max_output_tokens,
        compact=event.compact,
        keep_turns=event.keep_turns,
        limits=event.limits,
    )
    said = recorded(changes)
    return None if said is None else orjson.loads(said)


def compaction_data(
    event: e.ContextCompacted | e.CompactionFailed, *, is_operator: bool
) -> dict[str, Any]:
    """How the request for a summary ended; the summary itself is for the model."""
    usage = {"usage": usage_data(event.usage)}
    match event:
        case e.ContextCompacted():
            return {
                "attemptId": event.attempt_id,
                "firstPosition": event.first,
                "lastPosition": event.last,
                "replacedTokens": event.replaced_tokens,
                "summaryTokens": event.summary_tokens,
            } | usage
        case e.CompactionFailed():
            detail = {"detail": event.detail} if is_operator and event.detail else {}
            return {"attemptId": event.attempt_id, "reason": event.reason} | detail | usage


def usage_data(usage: Usage) -> dict[str, int | None]:
    return {
        "inputTokens": usage.input_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
        "outputTokens": usage.output_tokens,
    }
