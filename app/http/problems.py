"""The one table of errors: every code, its status and its title; RFC 9457 documents made from it.

Each code has a page in docs/problems; a test holds the table and the pages together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Scope

from app.http.action_sentences import action_sentence
from app.http.languages import Language
from app.turn.actions import Action


@dataclass(frozen=True, slots=True)
class Kind:
    status: int
    title: str


PROBLEMS: Mapping[str, Kind] = {
    "unauthenticated": Kind(401, "Sign in first."),
    "login_code_invalid": Kind(401, "This sign-in code is wrong or was used."),
    "forbidden": Kind(403, "Your role does not allow this."),
    "requester_may_not_approve": Kind(403, "Whoever asked for the turn may not approve its calls."),
    "cross_site": Kind(403, "This request comes from another site."),
    "not_found": Kind(404, "There is nothing at this address."),
    "turn_not_found": Kind(404, "There is no such turn."),
    "conversation_not_found": Kind(404, "There is no such conversation."),
    "queued_input_not_found": Kind(404, "The queue holds no such message, or no longer."),
    "message_not_found": Kind(404, "The conversation has no such message."),
    "method_not_allowed": Kind(405, "This address does not take that method."),
    "conversation_busy": Kind(409, "The conversation has a turn that has not ended."),
    "turn_not_blocked": Kind(409, "The turn is not waiting for a command."),
    "turn_terminal": Kind(409, "The turn has ended and takes no more commands."),
    "wrong_command": Kind(409, "The turn waits for something else than this command."),
    "correlation_mismatch": Kind(409, "The command names something that is not current."),
    "not_resumable": Kind(409, "There is nothing to resume."),
    "retry_not_due": Kind(409, "The scheduled retry is not due yet."),
    "wait_expired": Kind(409, "The time for this answer is over."),
    "idempotency_in_progress": Kind(409, "The first request with this key is not answered yet."),
    "version_conflict": Kind(409, "Others changed the turn at the same time."),
    "agent_version_unavailable": Kind(409, "The turn's version of its agent is not there."),
    "precondition_failed": Kind(412, "The turn is not at the version you have seen."),
    "payload_too_large": Kind(413, "The request's body is too large."),
    "result_too_large": Kind(413, "The result is longer than its tool allows."),
    "unsupported_media_type": Kind(415, "The request's body is not plain JSON."),
    "payload_invalid": Kind(422, "The request says something that cannot be."),
    "idempotency_key_reused": Kind(422, "The key was used for another request."),
    "messages_not_allowed": Kind(422, "A resume takes no messages."),
    "messages_required": Kind(422, "A message needs content."),
    "too_many_streams": Kind(429, "Too many event streams are open."),
    "bad_request": Kind(400, "The request cannot be understood."),
    "cursor_invalid": Kind(400, "The cursor is not one of this list or stream."),
    "internal_error": Kind(500, "Something went wrong on our side."),
    "turn_not_readable": Kind(503, "The turn was stored by a newer version of this service."),
    "store_unavailable": Kind(503, "The database does not answer."),
}

MEDIA_TYPE = "application/problem+json"
_RETRY_AFTER_SECONDS = 2
_PASSING = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def problem(
    code: str,
    detail: str,
    scope: Scope,
    *,
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The answer for an error; also tells the audit what became of the request.

    Raises:
        KeyError: for a code that is not in the table.
    """
    scope.setdefault("state", {})["problem_code"] = code
    all_headers = dict(headers or {})
    if code == "unauthenticated":
        all_headers["WWW-Authenticate"] = "Bearer"
    if PROBLEMS[code].status in _PASSING:
        all_headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
    return JSONResponse(
        problem_document(code, detail, extra=extra),
        status_code=PROBLEMS[code].status,
        headers=all_headers,
        media_type=MEDIA_TYPE,
    )


def problem_document(
    code: str, detail: str, *, extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The body of the answer for an error.

    Raises:
        KeyError: for a code that is not in the table.
    """
    kind = PROBLEMS[code]
    body: dict[str, Any] = {
        "type": f"urn:turnkeeper:problem:{code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
    }
    return body | dict(extra or {})


def code_for_status(status: int) -> str:
    """The code of an error that the framework itself answers."""
    known = {404: "not_found", 405: "method_not_allowed", 413: "payload_too_large"}
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "internal_error"
    return known.get(status, "bad_request")


def action_json(action: Action, language: Language = "en") -> dict[str, Any]:
    """An action as turn resources and refusals carry it."""
    optional = {
        "failureId": action.failure_id,
        "callId": action.call_id,
        "reason": action.reason,
        "message": action_sentence(action, language),
        "helps": list(action.helps) or None,
        "helpsFrom": None if action.helps_from is None else action.helps_from.isoformat(),
        "changes": list(action.changes) or None,
        "models": list(action.models) or None,
    }
    present = {name: value for name, value in optional.items() if value is not None}
    return {"command": action.command, "enabled": action.enabled} | present
