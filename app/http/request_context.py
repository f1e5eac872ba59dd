"""The outermost ring of a request: its id, its line in the log, and the net under it."""

import re
import secrets
import time
from collections.abc import Awaitable
from urllib.parse import quote

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.problems import problem
from app.ports.fault_points import BEFORE_ANSWER, reached

_ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_log = structlog.get_logger("app.http")


class RequestContext:
    """Gives every request an id (the caller's `X-Request-Id`, if it is one) and logs its end.

    An exception that nobody has answered becomes a 500 here; what it says goes to the log only.
    Answers are not to be stored unless they say otherwise: they are about somebody's turns.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope).get("x-request-id"))
        scope.setdefault("state", {})["request_id"] = request_id
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._answered(scope, receive, send, request_id)

    async def _answered(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        began = time.monotonic()
        status = 0

        async def start_with_id(message: Message) -> None:
            nonlocal status
            status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = request_id
            headers.setdefault("Cache-Control", "no-store")
            if scope["method"] != "GET":
                await reached(BEFORE_ANSWER)
            await send(message)

        def send_with_id(message: Message) -> Awaitable[None]:
            is_start = message["type"] == "http.response.start"
            return start_with_id(message) if is_start else send(message)

        try:
            await self._addressed(scope)(scope, receive, send_with_id)
        except Exception:  # the outermost loop: whatever it is, the caller gets an answer
            _log.exception("request_failed", method=scope["method"], path=_printable(scope))
            if status:
                raise
            detail = f"the log has it under request {request_id}"
            await problem("internal_error", detail, scope)(scope, receive, send_with_id)
        finally:
            _log.info(
                "request",
                method=scope["method"],
                path=_printable(scope),
                status=status,
                seconds=round(time.monotonic() - began, 4),
            )

    def _addressed(self, scope: Scope) -> ASGIApp:
        """The application, or the refusal of an address that none of ours can be.

        A route's pattern overlooks a line feed at its end, which nothing behind it may rely on.
        """
        if _CONTROL.search(scope["path"]):
            return problem("not_found", "an address has no control characters", scope)
        return self._app


def _printable(scope: Scope) -> str:
    """The address as it travels: whatever was sent, a line of the log stays one."""
    return quote(scope["path"], safe="/:")


def _request_id(given: str | None) -> str:
    if given and _ACCEPTABLE_ID.fullmatch(given):
        return given
    return f"req_{secrets.token_hex(8)}"
