"""The audit of commands: who may not even try, and one row for each that was refused.

Whatever is not a read and not the sign-in is a command, at any address: what nobody has thought of
is refused here, not let through. A command without a principal, and a retry without its failureId,
are refused here, before any service sees them. An accepted command's row is written in the commit
of its effect; a refused one has no commit, so its row is written here, before the refusal is
answered.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.auth import SIGN_IN_PATH
from app.http.bodies import Body, read_body, replayed
from app.http.problems import problem
from app.ports import AuditEntry, AuditLog, StoreUnavailable
from app.services.principal import Principal
from app.turn.ids import ActorId, ConversationId, TenantId, TurnId

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSED = HTTPStatus.BAD_REQUEST
_LONGEST_ID = 128
_NOBODY = "anonymous"

_NAMES = {
    ("POST", "turns"): "START_TURN",
    ("POST", "conversations/*/turns"): "START_TURN",
    ("POST", "conversations/*/messages"): "MESSAGE",
    ("POST", "conversations/*/resume"): "RESUME_CONVERSATION",
    ("POST", "conversations/*/revert"): "REVERT",
    ("POST", "conversations/*/unrevert"): "UNREVERT",
    ("DELETE", "conversations/*/queue/*"): "WITHDRAW_INPUT",
    ("POST", "conversations"): "PUT_CONVERSATION",
    ("PUT", "conversations/*"): "PUT_CONVERSATION",
    ("DELETE", "conversations/*"): "DELETE_CONVERSATION",
}
"""Commands by method and address, as `_address` writes it."""

_log = structlog.get_logger("app.audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command as far as its audit row tells of it."""

    action: str
    turn_id: str | None
    conversation_id: str | None
    failure_id: str | None
    call_id: str | None


class CommandAudit:
    """Wraps every command of the API; reads and the sign-in pass through."""

    def __init__(self, app: ASGIApp, audit: AuditLog) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READS:
            await self._app(scope, receive, send)
            return
        try:
            body = await read_body(scope, receive)
        except ClientDisconnect:
            return  # nobody is left to answer, and half a command is none
        scope["state"]["body"] = body
        if scope["path"] == SIGN_IN_PATH:
            refusal = _cross_site(scope) or _unreadable(scope, body)
            await self._pass_on(refusal, body, scope, receive, send)
            return
        asked = _asked(scope, body)

        async def refuse(message: Message) -> None:
            await self._record(scope, asked)
            await send(message)

        def audited_send(message: Message) -> Awaitable[None]:
            is_start = message["type"] == "http.response.start"
            is_refusal = is_start and message["status"] >= _REFUSED
            return refuse(message) if is_refusal else send(message)

        refusal = _forbidden(scope) or _unreadable(scope, body) or _unfit(scope, body, asked)
        await self._pass_on(refusal, body, scope, receive, audited_send)

    async def _pass_on(
        self, refusal: Response | None, body: Body, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, replayed(body, receive), send)

    async def _record(self, scope: Scope, asked: Asked) -> None:
        state: dict[str, Any] = scope["state"]
        principal: Principal | None = state.get("principal")
        entry = AuditEntry(
            tenant_id=principal.tenant_id if principal else TenantId(_NOBODY),
            actor_id=principal.actor_id if principal else ActorId(_NOBODY),
            action=asked.action,
            request_id=state["request_id"],
            outcome="refused",
            code=state.get("problem_code"),
            conversation_id=_as_id(ConversationId, asked.conversation_id),
            turn_id=_as_id(TurnId, asked.turn_id),
            failure_id=asked.failure_id,
            call_id=asked.call_id,
        )
        try:
            await self._audit.record(entry)
        except StoreUnavailable:
            _log.error("refusal_not_recorded", action=asked.action, code=entry.code)


def _forbidden(scope: Scope) -> Response | None:
    principal: Principal | None = scope["state"].get("principal")
    if principal is None or not (principal.tenant_id and principal.actor_id):
        return problem("unauthenticated", "a command needs a token or a session", scope)
    if cross_site := _cross_site(scope):
        return cross_site
    if not principal.may_command:
        return problem("forbidden", f"role {principal.role} may read only", scope)
    return None


def _cross_site(scope: Scope) -> Response | None:
    if not scope["state"]["is_cross_site"]:
        return None
    return problem("cross_site", "sent from another site's page", scope)


def _unreadable(scope: Scope, body: Body) -> Response | None:
    fault = body.fault
    return None if fault is None else problem(fault.code, fault.detail, scope)


def _unfit(scope: Scope, body: Body, asked: Asked) -> Response | None:
    if body.said.get("command") == "RETRY_MODEL" and not asked.failure_id:
        return problem("payload_invalid", "RETRY_MODEL needs the failureId it retries", scope)
    return None


def _asked(scope: Scope, body: Body) -> Asked:
    steps = scope["path"].strip("/").split("/")
    subject = _storable(steps[1]) if len(steps) > 1 else None
    return Asked(
        action=_action(scope["method"], steps, body),
        turn_id=subject if steps[0] == "turns" else None,
        conversation_id=subject if steps[0] == "conversations" else None,
        failure_id=_named(body, "failureId"),
        call_id=_named(body, "callId"),
    )


def _named(body: Body, field: str) -> str | None:
    value = body.said.get(field)
    return _storable(value) if isinstance(value, str) else None


def _action(method: str, steps: Sequence[str], body: Body) -> str:
    """The command by its name; what is none of ours goes by its method."""
    match (method, steps):
        case ("POST", ["turns", _, "resume"]):
            command = body.said.get("command", "RETRY_MODEL" if "failureId" in body.said else None)
            return _storable(command) if isinstance(command, str) else "RESUME"
        case ("POST", ["turns", _, "cancel" | "pause" | "run" | "fork" as verb]):
            return verb.upper()
        case ("POST", ["external-calls", "claim"]):
            return "CLAIM_EXTERNAL_CALLS"
        case _:
            return _NAMES.get((method, _address(steps)), method)


def _address(steps: Sequence[str]) -> str:
    """With a star for each id: every other step of an address but the first."""
    return "/".join("*" if n % 2 else step for n, step in enumerate(steps))


def _storable(text: str) -> str:
    """What a caller sent, in a form the database takes and a reader bears."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:_LONGEST_ID]


def _as_id(kind: Any, value: str | None) -> Any:  # noqa: ANN401 - a NewType in, a NewType out
    return None if value is None else kind(value)
