"""What a change leaves behind of approvals and of calls with outside tools, in its own statement.

Few changes do, so those statements have parts that the others are spared.
"""

from collections.abc import Mapping

import orjson

from app.ports import Commit, waited_for
from app.turn.events import (
    ExternalToolCompleted,
    ExternalToolFailed,
    ToolApprovalDecided,
    ToolApprovalRequested,
)
from app.turn.ids import CallId
from app.turn.open_calls import OpenCall
from app.turn.state import Turn
from app.turn.waits import ApprovalWait, ExternalWait, expires_at

KEEP_WAITS = """
approved AS (
    INSERT INTO approvals (turn_id, seq, tenant_id, call_id, tool_name, stage, fingerprint,
                           is_approved, actor_id, body, requested_at, decided_at)
    SELECT turn_id, a.seq, tenant_id, a.call_id, a.tool_name, a.stage, a.fingerprint,
           a.is_approved, a.actor_id, a.body, a.requested_at, a.decided_at
    FROM moved, unnest(CAST(:approved_seq AS int[]), CAST(:approved_call AS text[]),
                       CAST(:approved_tool AS text[]), CAST(:approved_stage AS text[]),
                       CAST(:approved_print AS text[]), CAST(:approved_yes AS boolean[]),
                       CAST(:approved_by AS text[]), CAST(:approved_body AS text[]),
                       CAST(:approved_asked_at AS timestamptz[]),
                       CAST(:approved_at AS timestamptz[]))
         AS a (seq, call_id, tool_name, stage, fingerprint, is_approved, actor_id, body,
               requested_at, decided_at)
),
dispatched AS (
    INSERT INTO external_calls (turn_id, call_id, tenant_id, conversation_id, agent_id, tool_name,
                                arguments, max_result_bytes, requested_at, expires_at, status,
                                claims)
    SELECT turn_id, d.call_id, tenant_id, conversation_id, CAST(:dispatched_by AS text),
           d.tool_name, d.arguments, d.max_result_bytes, d.requested_at, d.expires_at, 'open', 0
    FROM moved, unnest(CAST(:dispatched_call AS text[]), CAST(:dispatched_tool AS text[]),
                       CAST(:dispatched_arguments AS text[]), CAST(:dispatched_bytes AS int[]),
                       CAST(:dispatched_at AS timestamptz[]),
                       CAST(:dispatched_until AS timestamptz[]))
         AS d (call_id, tool_name, arguments, max_result_bytes, requested_at, expires_at)
),
returned AS (
    UPDATE external_calls e SET status = r.status, closed_at = clock_timestamp()
    FROM moved, unnest(CAST(:returned_call AS text[]), CAST(:returned_status AS text[]))
         AS r (call_id, status)
    WHERE e.turn_id = moved.turn_id AND e.call_id = r.call_id
)"""
"""Fed by `moved`, the one row of the turn."""


def wait_columns(turn: Turn) -> Mapping[str, object]:
    """What the turn's row says of its waits, by name."""
    waits = waited_for(turn)
    if not waits:
        return _WAITS_FOR_NOTHING
    return {
        "waiting_since": min((wait.requested_at for wait in waits), default=None),
        "wait_expires_at": turn.expires_at,
        "waits_for": sorted({wait.kind for wait in waits}) or None,
    }


_WAITS_FOR_NOTHING: Mapping[str, object] = {
    "waiting_since": None,
    "wait_expires_at": None,
    "waits_for": None,
}


def wait_values(commit: Commit) -> Mapping[str, object] | None:
    """The arguments of `KEEP_WAITS`, by name; `None` when there is nothing to keep."""
    if not _is_about_waits(commit):
        return None
    values = {**_approved(commit), **_dispatched(commit), **_returned(commit)}
    if not any(values.values()):
        return None
    return {**values, "dispatched_by": commit.after.identity.agent_id}


def _is_about_waits(commit: Commit) -> bool:
    """Whether a call waits before or behind the commit, or somebody decides about one within it."""
    calls = (*commit.before.open_calls, *commit.after.open_calls)
    is_waiting = [call for call in calls if call.wait is not None]
    return bool(is_waiting) or ToolApprovalDecided in map(type, commit.events)


def _approved(commit: Commit) -> Mapping[str, list[object]]:
    waits = {call.call_id: call.wait for call in commit.before.open_calls}
    decided: list[tuple[int, ToolApprovalDecided, ApprovalWait]] = []
    for sequence, event in enumerate(commit.events, start=commit.before.version + 1):
        match event:
            case ToolApprovalRequested(call_id=call_id, wait=wait):
                waits[call_id] = wait
            case ToolApprovalDecided(call_id=call_id):
                asked = waits.get(call_id)
                if isinstance(asked, ApprovalWait):
                    decided.append((sequence, event, asked))
            case _:
                pass
    return {
        "approved_seq": [sequence for sequence, _, _ in decided],
        "approved_call": [event.call_id for _, event, _ in decided],
        "approved_tool": [event.tool_name for _, event, _ in decided],
        "approved_stage": [event.stage for _, event, _ in decided],
        "approved_print": [event.fingerprint for _, event, _ in decided],
        "approved_yes": [event.is_approved for _, event, _ in decided],
        "approved_by": [event.actor_id for _, event, _ in decided],
        "approved_body": [_said(wait, event) for _, event, wait in decided],
        "approved_asked_at": [wait.requested_at for _, _, wait in decided],
        "approved_at": [event.at for _, event, _ in decided],
    }


def _said(wait: ApprovalWait, event: ToolApprovalDecided) -> str:
    said = {"content": wait.content, "message": wait.message, "reason": event.reason}
    return orjson.dumps(said).decode()


def _dispatched(commit: Commit) -> Mapping[str, list[object]]:
    before = _outside(commit.before)
    new = [pair for call_id, pair in _outside(commit.after).items() if call_id not in before]
    return {
        "dispatched_call": [call.call_id for call, _ in new],
        "dispatched_tool": [call.tool_name for call, _ in new],
        "dispatched_arguments": [wait.arguments for _, wait in new],
        "dispatched_bytes": [wait.max_result_bytes for _, wait in new],
        "dispatched_at": [wait.requested_at for _, wait in new],
        "dispatched_until": [expires_at(wait) for _, wait in new],
    }


def _returned(commit: Commit) -> Mapping[str, list[object]]:
    """Calls that are outside no more: done, failed, or given up for whatever reason."""
    how = {
        event.result.call_id: "completed" if isinstance(event, ExternalToolCompleted) else "failed"
        for event in commit.events
        if isinstance(event, ExternalToolCompleted | ExternalToolFailed)
    }
    still = _outside(commit.after)
    gone = [call_id for call_id in _outside(commit.before) if call_id not in still]
    return {
        "returned_call": [*gone],
        "returned_status": [how.get(call_id, "cancelled") for call_id in gone],
    }


def _outside(turn: Turn) -> Mapping[CallId, tuple[OpenCall, ExternalWait]]:
    return {
        call.call_id: (call, call.wait)
        for call in turn.open_calls
        if isinstance(call.wait, ExternalWait) and call.is_waiting
    }
