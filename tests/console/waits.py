"""What turns wait for, as the public API tells it: the shapes that the cards are fed with."""

from collections.abc import Mapping, Sequence

Json = Mapping[str, object]

ARGUMENTS = '{"orderId": "88121", "amount": 12345678901234567890, "note": "Ms Aalto\u200bnen"}'

ADDRESS: Json = {
    "type": "object",
    "required": ["street", "floor"],
    "properties": {
        "street": {"type": "string", "title": "Street"},
        "floor": {"type": "integer", "title": "Floor"},
        "contact": {
            "type": "object",
            "title": "Contact",
            "properties": {"name": {"type": "string"}},
        },
    },
}

_NOTHING: Json = {
    "suspensionType": None,
    "correlationId": None,
    "requestedAt": "2026-08-15T12:00:00Z",
    "timeoutMillis": None,
    "expiresAt": None,
    "onExpiry": None,
    "isExpired": False,
    "nextRunnableAt": None,
    "question": None,
    "modelFailure": None,
    "callId": None,
    "toolName": None,
    "arguments": None,
    "stage": None,
    "fingerprint": None,
    "message": None,
    "title": None,
    "formKey": None,
    "schema": None,
    "askedBy": None,
    "maxResultBytes": None,
    "idempotencyKey": None,
}

_COMMANDS = {
    "TOOL_APPROVAL": ("APPROVE_TOOL", "REJECT_TOOL"),
    "USER_INPUT": ("USER_INPUT",),
    "EXTERNAL_TOOL": ("TOOL_RESULT", "TOOL_ERROR"),
}
_STATUS = {
    "TOOL_APPROVAL": "WAITING_FOR_APPROVAL",
    "USER_INPUT": "WAITING_FOR_USER",
    "EXTERNAL_TOOL": "WAITING_FOR_TOOL",
}


def _of_call(kind: str, tool_name: str, **more: object) -> Json:
    call = {"callId": "c1", "correlationId": "c1", "toolName": tool_name}
    return {**_NOTHING, "suspensionType": kind, **call, **more}


def approval(**more: object) -> Json:
    asked = {"arguments": ARGUMENTS, "stage": "policy", "fingerprint": "9f2c41d781ab" + "0" * 52}
    return _of_call("TOOL_APPROVAL", "payments_refund", **{**asked, **more})


def form(**more: object) -> Json:
    asked = {"askedBy": "tool", "formKey": "address", "title": "Address", "schema": ADDRESS}
    return _of_call("USER_INPUT", "book_courier", **{**asked, **more})


def in_words(**more: object) -> Json:
    """The model asks, and any text is an answer."""
    asked = {"askedBy": "model", "message": "Which depot?"}
    return _of_call("USER_INPUT", "request_user_input", **{**asked, **more})


def external(**more: object) -> Json:
    asked = {"arguments": ARGUMENTS, "maxResultBytes": 20, "idempotencyKey": "t:c1"}
    return _of_call("EXTERNAL_TOOL", "scanner_locate", **{**asked, **more})


def question(text: str = "Which year?") -> Json:
    return {**_NOTHING, "suspensionType": "USER_INPUT", "question": text}


def _action(command: str, call_id: object = None) -> Json:
    of_call = {"callId": call_id} if call_id else {}
    return {"command": command, "enabled": True, **of_call}


def turn(*waits: Json, disabled: Sequence[Json] = (), **more: object) -> Json:
    """A turn that waits for these; `disabled` are actions in the place of those of that name."""
    own = [
        _action(command, wait["callId"])
        for wait in waits
        for command in _COMMANDS[str(wait["suspensionType"])]
    ]
    usual = [_action(command) for command in ("MESSAGE", "REPLAN_WITH_MESSAGE", "CANCEL")]
    off = {action["command"]: action for action in disabled}
    status = _STATUS[str(waits[0]["suspensionType"])] if waits else "RUNNING"
    return {
        "turnId": "t",
        "conversationId": "s",
        "agentId": "support",
        "agentVersion": "3",
        "status": status,
        "version": 9,
        "suspension": waits[0] if waits else None,
        "waits": list(waits),
        "message": None,
        "actions": [off.get(action["command"], action) for action in (*own, *usual)],
        "queue": [],
    } | more
