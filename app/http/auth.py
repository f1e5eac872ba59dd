"""Who is asking: a bearer token, or the cookie that a one-time code was exchanged for.

Token and cookie are one actor, so the same conversations show by either. The cookie is signed with
a key made from the token: it outlives the process, every process with the token knows it, and a new
token ends it.
"""

import hmac
import secrets
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.problems import problem
from app.services.principal import Principal

COOKIE = "turnkeeper_session"
COOKIE_SECONDS = 30 * 24 * 3600
_CODE_SECONDS = 24 * 3600
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(slots=True)
class LoginCodes:
    """Codes that can be exchanged for a session once; they live as long as their process."""

    _codes: dict[str, float] = field(default_factory=dict)

    def issue(self) -> str:
        """A fresh code, good once and for a day."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = time.monotonic() + _CODE_SECONDS
        return code

    def take(self, code: str) -> bool:
        """Whether the code was good; it is not any more."""
        return self._codes.pop(code, 0.0) > time.monotonic()


class Authenticator:
    """Knows the default token and the sessions made from it."""

    def __init__(self, token: str, principal: Principal) -> None:
        self._token = token.encode()
        self._principal = principal
        self._sessions = URLSafeTimedSerializer(token, salt="turnkeeper.session")

    def by_token(self, authorization: str | None) -> Principal | None:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        matches = hmac.compare_digest(token.strip().encode(), self._token)
        return self._principal if matches else None

    def by_cookie(self, cookie: str | None) -> Principal | None:
        if not cookie:
            return None
        try:
            actor = self._sessions.loads(cookie, max_age=COOKIE_SECONDS)
        except BadSignature:
            return None
        return self._principal if actor == self._principal.actor_id else None

    def new_session(self) -> str:
        """The value of a session's cookie."""
        return str(self._sessions.dumps(self._principal.actor_id))


class Authentication:
    """Puts the principal, or `None`, into the state; refuses commands from other sites."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        authorization = connection.headers.get("authorization")
        principal = self._authenticator.by_token(authorization)
        if authorization is None:
            principal = self._authenticator.by_cookie(connection.cookies.get(COOKIE))
            if principal and scope["method"] not in _READS and _is_cross_site(connection):
                answer = problem("cross_site", "sent from another site's page", scope)
                await answer(scope, receive, send)
                return
        scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)


def _is_cross_site(connection: HTTPConnection) -> bool:
    """Browsers name the page's origin with every command; ours is the host that was asked."""
    origin = connection.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != connection.headers.get("host")
