"""Idempotency-Key: a request that is repeated is answered again, and has its effect once.

The reply to a request with a key is written with its effect, in one statement, so a key is either
unused or has a reply. A repetition gets that reply and goes no further; another request under the
same key is refused. A refused request has no effect, so it leaves its key unused.

Two requests under one key that run at the same time: the database lets one of them take effect. The
other is refused in the end, for whatever reason it meets; before that refusal is sent, the key is
looked up once more, and the reply it then has is sent instead.

A request that waits (`Prefer: wait`) has its effect before it has its answer. A repetition in
between is told so; afterwards it gets the answer that was waited for, or the reply of the effect if
the process ended first. One that asks for events gets the turn's events from where the first began.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
import structlog
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.auth import SIGN_IN_PATH
from app.http.bodies import Body
from app.http.problems import problem
from app.ports import FoundReply, KeptReply, ReplyStore, StoreUnavailable
from app.services.principal import Principal
from app.turn.ids import ActorId, TenantId

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
"""The header of an answer to what had its effect before: `true`."""
REPLAYED_HEADER: dict[str, Any] = {
    REPLAYED: {
        "description": "`true` when the request had been taken before, by its `Idempotency-Key` or "
        "its `messageId`, and has had no further effect.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}
"""How that header of an answer is described."""
KEY_PATTERN = r"^[\x21-\x7e]{1,255}$"
_KEY = re.compile(KEY_PATTERN)
_REFUSED = HTTPStatus.BAD_REQUEST
_NOT_OF_THE_REPLY = frozenset({"content-length", "x-request-id", REPLAYED.lower()})

_log = structlog.get_logger("app.idempotency")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """A request's key, with a digest of what it asks for."""

    key: str
    digest: str
    """SHA-256 of method, address and body; JSON that says the same in another order is the same."""


def kept_reply(
    key: RequestKey, response: Response, *, events_url: str | None, answering_seconds: float
) -> KeptReply:
    """What is stored of an answer, to be given again."""
    headers = {k: v for k, v in response.headers.items() if k not in _NOT_OF_THE_REPLY}
    reply = _encoded(response.status_code, headers, bytes(response.body), events_url)
    return KeptReply(
        key=key.key, digest=key.digest, reply=reply, answering_seconds=answering_seconds
    )


class IdempotencyKeys:
    """Wraps every POST of the API but the sign-in, whose code is good once anyway."""

    def __init__(self, app: ASGIApp, replies: ReplyStore) -> None:
        self._app = app
        self._replies = replies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] == SIGN_IN_PATH:
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).getlist(HEADER)
        if not given:
            await self._app(scope, receive, send)
            return
        if len(given) > 1 or not _KEY.fullmatch(given[0]):
            detail = f"{HEADER} is one text of 1 to 255 visible ASCII characters"
            await problem("bad_request", detail, scope)(scope, receive, send)
            return
        key = RequestKey(key=given[0], digest=_digest(scope))
        try:
            found = await self._replies.find(_whose(scope), key.key)
        except StoreUnavailable:
            detail = "try again; under the same key the request takes effect once"
            await problem("store_unavailable", detail, scope)(scope, receive, send)
            return
        if found is not None:
            await self._said_again(found, key, scope, receive, send)
            return
        scope["state"]["request_key"] = key
        await self._said_first(key, scope, receive, send)

    async def _said_first(
        self, key: RequestKey, scope: Scope, receive: Receive, send: Send
    ) -> None:
        answer = _Answer(send)
        await self._app(scope, receive, answer.take)
        if answer.is_refusal:
            found = await self._found_now(key, scope)
            if found is not None:
                await self._said_again(found, key, scope, receive, send)
                return
        elif answer.was_waited_for:
            await self._settle(key, answer, scope)
        await answer.let_go()

    async def _found_now(self, key: RequestKey, scope: Scope) -> FoundReply | None:
        try:
            return await self._replies.find(_whose(scope), key.key)
        except StoreUnavailable:
            return None

    async def _settle(self, key: RequestKey, answer: "_Answer", scope: Scope) -> None:
        """Keep the answer that was waited for in place of the one at the time of the effect."""
        try:
            found = await self._replies.find(_whose(scope), key.key)
            if found is not None:
                reply = answer.encoded(orjson.loads(found.reply)["eventsUrl"])
                kept = KeptReply(key=key.key, digest=key.digest, reply=reply)
                await self._replies.settle(_whose(scope), kept)
        except StoreUnavailable:
            _log.warning("reply_not_settled")  # repetitions get the reply of the effect

    async def _said_again(
        self, found: FoundReply, key: RequestKey, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if found.digest != key.digest:
            detail = "this key was used for another request; give a new request a new key"
            await problem("idempotency_key_reused", detail, scope)(scope, receive, send)
            return
        if found.busy_seconds > 0:
            detail = "the first request with this key has not been answered yet"
            headers = {"Retry-After": str(math.ceil(found.busy_seconds))}
            refusal = problem("idempotency_in_progress", detail, scope, headers=headers)
            await refusal(scope, receive, send)
            return
        scope["state"].pop("problem_code", None)
        reply: dict[str, Any] = orjson.loads(found.reply)
        if reply["eventsUrl"] and "text/event-stream" in Headers(scope=scope).get("accept", ""):
            await self._app(_reading(reply["eventsUrl"], scope), receive, _marking(send))
            return
        headers = reply["headers"] | {REPLAYED: "true"}
        await Response(reply["body"], reply["status"], headers)(scope, receive, send)


class _Answer:
    """An answer on its way.

    A refusal is held back until it is known to stand, an answer that was waited for until it is
    kept, so that whoever has it may repeat the request. Anything else passes.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        self._start: Message = {}
        self.is_refusal = False
        self.was_waited_for = False

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            self.is_refusal = message["status"] >= _REFUSED
            headers = Headers(raw=message["headers"])
            is_stream = headers.get("content-type", "").startswith("text/event-stream")
            self.was_waited_for = "preference-applied" in headers and not is_stream
        if self.is_refusal or self.was_waited_for:
            self._held.append(message)
        else:
            await self._send(message)

    async def let_go(self) -> None:
        for message in self._held:
            await self._send(message)

    def encoded(self, events_url: str | None) -> str:
        headers = {
            k: v
            for k, v in Headers(raw=self._start["headers"]).items()
            if k not in _NOT_OF_THE_REPLY
        }
        body = b"".join(message.get("body", b"") for message in self._held)
        return _encoded(self._start["status"], headers, body, events_url)


def _encoded(status: int, headers: Mapping[str, str], body: bytes, events_url: str | None) -> str:
    reply = {
        "status": status,
        "headers": dict(headers),
        "body": body.decode(),
        "eventsUrl": events_url,
    }
    return orjson.dumps(reply).decode()


def _whose(scope: Scope) -> tuple[TenantId, ActorId]:
    principal: Principal = scope["state"]["principal"]
    return principal.tenant_id, principal.actor_id


def _digest(scope: Scope) -> str:
    body: Body = scope["state"]["body"]
    said = orjson.dumps(body.said, option=orjson.OPT_SORT_KEYS) if body.said else body.content
    digest = hashlib.sha256()
    for part in (scope["path"].encode(), scope["query_string"], said):
        digest.update(f"{len(part)}:".encode() + part)
    return digest.hexdigest()


def _reading(url: str, scope: Scope) -> Scope:
    """The request as one for the events at `url`."""
    path, _, query = url.partition("?")
    reading = {**scope, "method": "GET", "path": path, "raw_path": path.encode()}
    return reading | {"query_string": query.encode()}


def _marking(send: Send) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (REPLAYED.lower().encode(), b"true")]
        await send(message)

    return marked


def request_key(request: Request) -> RequestKey | None:
    """The key of a request whose reply is to be kept."""
    found: RequestKey | None = request.scope["state"].get("request_key")
    return found
