"""From exceptions to problem documents, in one place for the whole application."""

import math
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from app.http.languages import Language, language_in
from app.http.problems import PROBLEMS, action_json, code_for_status, problem, problem_document
from app.ports import KeyTaken, OutcomeUnknown, StoreUnavailable, TurnNotReadable
from app.runner.commit import VersionMoved
from app.services.deps import Services
from app.services.errors import FormInvalid, Refused
from app.services.principal import Principal
from app.services.turns import offered
from app.turn.errors import Rejected, RetryNotDue
from app.turn.state import Turn

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_MOST_FIELDS = 20
_MOST_IN_DETAIL = 5
_LONGEST_NAME = 100


class ProblemError(Exception):
    """A problem found at the edge, such as a header that makes no sense."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def install(app: FastAPI, services: Services) -> None:
    """Answer every exception of a route with a problem document."""

    async def rejected(request: Request, error: Exception) -> Response:
        if not isinstance(error, Rejected):
            raise error
        extra = _what_is_true(error.turn, services, *_asker(request))
        headers = _when(error.turn, services) if isinstance(error, RetryNotDue) else {}
        return problem(error.code, error.detail, request.scope, extra=extra, headers=headers)

    async def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, Refused):
            raise error
        extra = _of(error, services, *_asker(request))
        if isinstance(error, FormInvalid):
            extra["errors"] = [{"field": f, "problem": said} for f, said in error.fields]
        return problem(error.code, error.detail, request.scope, extra=extra)

    async def moved(request: Request, error: Exception) -> Response:
        if not isinstance(error, VersionMoved):
            raise error
        extra = _what_is_true(error.turn, services, *_asker(request))
        return problem("precondition_failed", str(error), request.scope, extra=extra)

    app.add_exception_handler(Rejected, rejected)
    app.add_exception_handler(VersionMoved, moved)
    app.add_exception_handler(Refused, refused)
    app.add_exception_handler(ProblemError, _at_the_edge)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_the_framework)
    app.add_exception_handler(StoreUnavailable, _store_unavailable)
    app.add_exception_handler(OutcomeUnknown, _store_unavailable)
    app.add_exception_handler(TurnNotReadable, _not_readable)
    app.add_exception_handler(KeyTaken, _key_taken)


def refusal_document(
    error: Rejected | Refused, services: Services, principal: Principal, language: Language
) -> dict[str, Any]:
    """The problem document that the refusal is answered with."""
    extra = _of(error, services, principal, language)
    return problem_document(error.code, error.detail, extra=extra)


def _asker(request: Request) -> tuple[Principal | None, Language]:
    return request.scope["state"].get("principal"), language_in(request.scope)


def _of(
    error: Rejected | Refused,
    services: Services,
    principal: Principal | None,
    language: Language,
) -> dict[str, Any]:
    turn = error.turn
    known = {} if turn is None else _what_is_true(turn, services, principal, language)
    reason = error.reason if isinstance(error, Refused) else None
    return known if reason is None else known | {"reason": reason}


def _what_is_true(
    turn: Turn, services: Services, principal: Principal | None, language: Language
) -> dict[str, Any]:
    """What a refused caller needs to go on: the state as it is, and what it admits."""
    failure = turn.current_failure
    retry_at = turn.retry_at
    return {
        "turnId": turn.identity.turn_id,
        "conversationId": turn.identity.conversation_id,
        "currentStatus": turn.status,
        "currentVersion": turn.version,
        "currentFailureId": None if failure is None else failure.failure_id,
        "retryAt": None if retry_at is None else retry_at.isoformat(),
        "allowedActions": [
            action_json(each, language) for each in offered(services, turn, principal)
        ],
    }


def _when(turn: Turn, services: Services) -> dict[str, str]:
    """How long waiting helps, in whole seconds."""
    if turn.due_at is None:
        return {}
    seconds = (turn.due_at - services.clock()).total_seconds()
    return {"Retry-After": str(max(math.ceil(seconds), 0))}


async def _at_the_edge(request: Request, error: Exception) -> Response:
    if not isinstance(error, ProblemError):
        raise error
    return problem(error.code, error.detail, request.scope)


async def _invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    found = error.errors()[:_MOST_FIELDS]
    fields = [{"field": _field(each["loc"]), "problem": _said(each["msg"])} for each in found]
    # An error whose type is a problem's code is that problem.
    code = next((each["type"] for each in found if each["type"] in PROBLEMS), "payload_invalid")
    detail = "; ".join(f"{f['field']}: {f['problem']}" for f in fields[:_MOST_IN_DETAIL])
    return problem(code, detail, request.scope, extra={"errors": fields})


def _field(place: Sequence[str | int]) -> str:
    """Where in the request, as `body.content.parts.0.text`; a caller's own names may be long."""
    return ".".join(str(step)[:_LONGEST_NAME] for step in place)


def _said(message: str) -> str:
    return message.removeprefix("Value error, ")


async def _of_the_framework(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    code = code_for_status(error.status_code)
    detail = f"{request.method} {request.scope['path']}"
    if code != "method_not_allowed":
        return problem(code, detail, request.scope)
    allowed = ", ".join(method for method in _METHODS if _is_taken(request, method))
    return problem(code, detail, request.scope, headers={"Allow": allowed})


def _is_taken(request: Request, method: str) -> bool:
    """Whether some route of this address takes the method; the framework names one route's only."""
    asked = {**request.scope, "method": method}
    routes: Sequence[BaseRoute] = request.app.routes
    return any(route.matches(asked)[0] is Match.FULL for route in routes)


async def _key_taken(request: Request, _error: Exception) -> Response:
    """Seen by nobody but a caller whose key is past its time the moment after: it has a reply."""
    detail = "another request with this key took effect first; send it again"
    return problem("idempotency_in_progress", detail, request.scope)


async def _not_readable(request: Request, error: Exception) -> Response:
    detail = f"turn {str(error)!r} is stored in a form that this server does not know"
    return problem("turn_not_readable", detail, request.scope)


async def _store_unavailable(request: Request, error: Exception) -> Response:
    detail = "try again; a repeated message with the same messageId takes effect once"
    if isinstance(error, OutcomeUnknown):
        detail = f"whether the request took effect is not known yet; {detail}"
    return problem("store_unavailable", detail, request.scope)
