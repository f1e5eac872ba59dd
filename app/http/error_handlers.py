"""From exceptions to problem documents, in one place for the whole application."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.http.problems import action_json, code_for_status, problem
from app.ports import Clock, OutcomeUnknown, StoreUnavailable
from app.runner.commit import VersionMoved
from app.services.errors import Refused
from app.turn.actions import actions
from app.turn.errors import Rejected
from app.turn.state import RetryScheduled, Turn


class ProblemError(Exception):
    """A problem found at the edge, such as a header that makes no sense."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def install(app: FastAPI, clock: Clock) -> None:
    """Answer every exception of a route with a problem document."""

    async def rejected(request: Request, error: Exception) -> Response:
        if not isinstance(error, Rejected):
            raise error
        return problem(
            error.code, error.detail, request.scope, extra=_what_is_true(error.turn, clock)
        )

    async def moved(request: Request, error: Exception) -> Response:
        if not isinstance(error, VersionMoved):
            raise error
        extra = _what_is_true(error.turn, clock)
        return problem("precondition_failed", str(error), request.scope, extra=extra)

    app.add_exception_handler(Rejected, rejected)
    app.add_exception_handler(VersionMoved, moved)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(ProblemError, _at_the_edge)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_the_framework)
    app.add_exception_handler(StoreUnavailable, _store_unavailable)
    app.add_exception_handler(OutcomeUnknown, _store_unavailable)


def _what_is_true(turn: Turn, clock: Clock) -> dict[str, Any]:
    """What a refused caller needs to go on: the state as it is, and what it admits."""
    failure = turn.current_failure
    due_at = turn.state.due_at if isinstance(turn.state, RetryScheduled) else None
    return {
        "turnId": turn.identity.turn_id,
        "conversationId": turn.identity.conversation_id,
        "currentStatus": turn.status,
        "currentVersion": turn.version,
        "currentFailureId": None if failure is None else failure.failure_id,
        "retryAt": None if due_at is None else due_at.isoformat(),
        "allowedActions": [action_json(action) for action in actions(turn, at=clock())],
    }


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, Refused):
        raise error
    return problem(error.code, error.detail, request.scope)


async def _at_the_edge(request: Request, error: Exception) -> Response:
    if not isinstance(error, ProblemError):
        raise error
    return problem(error.code, error.detail, request.scope)


async def _invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    fields = [
        {"field": ".".join(str(step) for step in found["loc"]), "problem": found["msg"]}
        for found in error.errors()
    ]
    code = (
        "messages_required"
        if any(f["field"] == "body.content" for f in fields)
        and any(
            found["type"] == "missing" and found["loc"][-1:] == ("content",)
            for found in error.errors()
        )
        else "payload_invalid"
    )
    detail = "; ".join(f"{f['field']}: {f['problem']}" for f in fields[:5])
    return problem(code, detail, request.scope, extra={"errors": fields})


async def _of_the_framework(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    code = code_for_status(error.status_code)
    headers = {k: v for k, v in (error.headers or {}).items() if k.lower() == "allow"}
    return problem(code, f"{request.method} {request.url.path}", request.scope, headers=headers)


async def _store_unavailable(request: Request, error: Exception) -> Response:
    detail = "try again; a repeated message with the same messageId takes effect once"
    if isinstance(error, OutcomeUnknown):
        detail = f"whether the request took effect is not known yet; {detail}"
    return problem("store_unavailable", detail, request.scope)
