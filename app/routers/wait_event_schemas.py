"""The data of events about calls that wait for somebody."""

from collections.abc import Mapping
from typing import Any

import orjson

from app.routers.failure_schemas import millis
from app.routers.wait_schemas import idempotency_key
from app.turn import events as e
from app.turn.agent import WaitPolicy
from app.turn.ids import TurnId
from app.turn.waits import WAITING, Wait


def wait_event_data(  # noqa: C901 - it only routes
    event: e.WaitEvent, turn_id: TurnId
) -> Mapping[str, Any]:
    """What happened to the call, with all that whoever answers it has to see."""
    match event:
        case e.ToolApprovalRequested(wait=wait):
            asked = {
                "stage": wait.stage,
                "arguments": wait.content,
                "fingerprint": wait.fingerprint,
                "message": wait.message,
                "attempt": wait.attempt,
            }
            return _of(event) | asked | _time(wait)
        case e.ToolInputRequested(wait=wait):
            form = {
                "askedBy": wait.asked_by,
                "formKey": wait.form_key,
                "title": wait.title,
                "message": wait.message,
                "schema": None if wait.schema is None else orjson.loads(wait.schema),
            }
            return _of(event) | form | _time(wait)
        case e.ExternalToolRequested(wait=wait):
            errand = {
                "arguments": wait.arguments,
                "idempotencyKey": idempotency_key(turn_id, event.call_id),
                "maxResultBytes": wait.max_result_bytes,
            }
            return _of(event) | errand | _time(wait)
        case e.ToolPutAside(call_id=call_id, wait=wait):
            return {"callId": call_id, "suspensionType": WAITING[wait.kind][0]}
        case e.ToolApprovalDecided():
            said = {
                "stage": event.stage,
                "fingerprint": event.fingerprint,
                "approved": event.is_approved,
                "actorId": event.actor_id,
                "reason": event.reason,
                "decidedAt": event.at,
            }
            return _of(event) | said
        case e.ToolInputReceived(call_id=call_id, data=data):
            return {"callId": call_id, "data": None if data is None else orjson.loads(data)}
        case e.ExternalToolCancelRequested():
            return _of(event)
        case e.WaitExpired(call_id=call_id, on_expiry=on_expiry):
            return {"callId": call_id, "onExpiry": on_expiry}


def policy_data(policy: WaitPolicy) -> dict[str, Any]:
    """How long a wait may take, and what happens then; null where it may take for ever."""
    is_bounded = policy.timeout is not None
    return {
        "timeoutMillis": millis(policy.timeout),
        "onExpiry": policy.on_expiry if is_bounded else None,
    }


def _of(
    event: e.ToolApprovalRequested
    | e.ToolInputRequested
    | e.ExternalToolRequested
    | e.ToolApprovalDecided
    | e.ExternalToolCancelRequested,
) -> dict[str, Any]:
    return {"callId": event.call_id, "toolName": event.tool_name}


def _time(wait: Wait) -> dict[str, Any]:
    return {"requestedAt": wait.requested_at} | policy_data(wait.policy)
