"""Who is asking: a bearer token, or the cookie that a one-time code was exchanged for.

Token and cookie are one actor, so the same conversations show by either. The cookie is signed with
a key made from the token: it outlives the process, every process with the token knows it, and a new
token ends it.
"""

import hmac
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from app.services.principal import Principal

SIGN_IN_PATH = "/console/login"
COOKIE = "turnkeeper_session"
COOKIE_SECONDS = 30 * 24 * 3600
_CODE_SECONDS = 24 * 3600


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
    """Puts into the state who asks (or `None`), and whether another site's page does it for them.

    `who` in the state tells it anew, for answers that last longer than what they were allowed by.

    What follows from it is for the audit of commands and for the routes to say.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        authorization = connection.headers.get("authorization")
        state = scope.setdefault("state", {})
        if authorization is None:
            cookie = connection.cookies.get(COOKIE)
            who = partial(self._authenticator.by_cookie, cookie)
        else:  # which no browser sends on its own
            who = partial(self._authenticator.by_token, authorization)
        state["who"], state["principal"] = who, who()
        state["is_cross_site"] = authorization is None and _is_cross_site(connection)
        await self._app(scope, receive, send)


def _is_cross_site(connection: HTTPConnection) -> bool:
    """Browsers name the page's origin with every command; ours is the host that was asked."""
    origin = connection.headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != connection.headers.get("host")
    except ValueError:
        return True  # no browser of ours says that
