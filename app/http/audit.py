"""The audit of commands: who may not even try, and one row for each that was refused.

A command without a principal, and a retry without its failureId, are refused here, before any
service sees them. An accepted command's row is written in the commit of its effect; a refused one
has no commit, so its row is written here, before the refusal is answered.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
import structlog
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.problems import problem
from app.ports import AuditEntry, AuditLog, StoreUnavailable
from app.services.principal import Principal
from app.turn.ids import ActorId, ConversationId, TenantId, TurnId

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_LARGEST_BODY_BYTES = 1024 * 1024
_LONGEST_ID = 128
_NOBODY = "anonymous"
_PATH = re.compile(
    r"/(?:turns/(?P<turn>[^/]+)|conversations/(?P<conversation>[^/]+)|conversations|turns)"
    r"(?:/(?P<verb>\w+))?/?"
)

_log = structlog.get_logger("app.audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command as far as its audit row tells of it."""

    action: str
    turn_id: str | None
    conversation_id: str | None
    failure_id: str | None
    is_retry_without_failure: bool


class CommandAudit:
    """Wraps every command of the API; reads and the sign-in pass through."""

    def __init__(self, app: ASGIApp, audit: AuditLog) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if path is None or scope["method"] in _READS:
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        asked = _asked(path, body)
        refusal = _refusal(scope, body, asked)

        async def audited_send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= _REFUSED:
                await self._record(scope, asked)
            await send(message)

        if refusal is not None:
            await refusal(scope, receive, audited_send)
            return
        await self._app(scope, _replayed(body or b"", receive), audited_send)

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
        )
        try:
            await self._audit.record(entry)
        except StoreUnavailable:
            _log.error("refusal_not_recorded", action=asked.action, code=entry.code)


_REFUSED = HTTPStatus.BAD_REQUEST


def _refusal(scope: Scope, body: bytes | None, asked: Asked) -> Response | None:
    """The answer to a command that no service is to see."""
    principal: Principal | None = scope["state"].get("principal")
    if principal is None or not (principal.tenant_id and principal.actor_id):
        return problem("unauthenticated", "a command needs a token or a session", scope)
    if not principal.may_command:
        return problem("forbidden", f"role {principal.role} may read only", scope)
    if body is None:
        limit = f"the limit is {_LARGEST_BODY_BYTES} bytes"
        return problem("payload_too_large", limit, scope)
    if "idempotency-key" in Headers(scope=scope):
        detail = "leave the header out; a message's messageId makes it safe to repeat"
        return problem("idempotency_key_unsupported", detail, scope)
    if asked.is_retry_without_failure:
        return problem("payload_invalid", "RETRY_MODEL needs the failureId it retries", scope)
    return None


async def _body(receive: Receive) -> bytes | None:
    """The whole body; `None` when it is too large, the rest of it then unread."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > _LARGEST_BODY_BYTES:
            return None
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever else comes, such as the caller's leaving."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _asked(path: re.Match[str], body: bytes | None) -> Asked:
    said = _object(body)
    verb = path["verb"] or "put_conversation"
    named = said.get("command")
    command = named if isinstance(named, str) else None
    failure_id = said.get("failureId")
    has_failure = isinstance(failure_id, str) and bool(failure_id)
    is_retry = verb == "resume" and command == "RETRY_MODEL"
    action = command if verb == "resume" and command else _ACTIONS.get(verb, verb.upper())
    return Asked(
        action=_storable(action) or "",
        turn_id=_storable(path["turn"]),
        conversation_id=_storable(path["conversation"]),
        failure_id=_storable(failure_id) if isinstance(failure_id, str) else None,
        is_retry_without_failure=is_retry and not has_failure,
    )


_ACTIONS = {"messages": "MESSAGE", "resume": "RETRY_MODEL", "cancel": "CANCEL"}


def _object(body: bytes | None) -> dict[str, Any]:
    try:
        said = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def _storable(text: str | None) -> str | None:
    """What a caller sent, in a form the database takes and a reader bears."""
    if text is None:
        return None
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:_LONGEST_ID]


def _as_id(kind: Any, value: str | None) -> Any:  # noqa: ANN401 - a NewType in, a NewType out
    return None if value is None else kind(value)
