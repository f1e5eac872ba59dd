"""What routes ask for, as annotated types."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Header, Path, Query, Request

from app.http.auth import Authenticator, LoginCodes
from app.http.error_handlers import ProblemError
from app.http.etags import version_in
from app.http.languages import Language, language_of
from app.http.open_streams import OpenStreams
from app.http.sse import Frames
from app.http.worker_app import Figures
from app.routers.preferences import Preference, parse_prefer
from app.routers.wire import ID_PATTERN
from app.services.deps import Caller, Services
from app.services.principal import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """What the application keeps for its routes."""

    services: Services
    authenticator: Authenticator
    login_codes: LoginCodes
    frames: Frames
    """What readers of events share."""
    open_streams: OpenStreams
    stopping: asyncio.Event
    """Set when the process is about to stop: streams end, so that readers come back elsewhere."""
    figures: Figures


# These are coroutines although they await nothing: FastAPI hands plain functions to a thread each.


async def _state(request: Request) -> AppState:
    state: AppState = request.app.state.turnkeeper
    return state


async def _services(state: Annotated[AppState, Depends(_state)]) -> Services:
    return state.services


async def _principal(request: Request) -> Principal:
    principal: Principal | None = request.scope["state"].get("principal")
    if principal is None:
        raise ProblemError("unauthenticated", "this needs a token or a session")
    return principal


async def _caller(request: Request, principal: Annotated[Principal, Depends(_principal)]) -> Caller:
    state = request.scope["state"]
    return Caller(
        principal=principal,
        request_id=state["request_id"],
        is_still_known=lambda: bool(state["who"]() == principal),
    )


async def _language(accept_language: Annotated[str | None, Header()] = None) -> Language:
    return language_of(accept_language)


async def _if_match(if_match: Annotated[str | None, Header()] = None) -> int | None:
    return version_in(if_match)


async def _prefer(prefer: Annotated[str | None, Header()] = None) -> Preference:
    return parse_prefer(prefer)


StateDep = Annotated[AppState, Depends(_state)]
ServicesDep = Annotated[Services, Depends(_services)]
CallerDep = Annotated[Caller, Depends(_caller)]
LanguageDep = Annotated[Language, Depends(_language)]
IfMatch = Annotated[int | None, Depends(_if_match)]
Until = Annotated[
    Literal["blocked"] | None,
    Query(
        description="`blocked`: the stream ends when the turn waits, for somebody or for a time."
    ),
]
Prefer = Annotated[Preference, Depends(_prefer)]
ConversationPath = Annotated[str, Path(alias="conversationId", pattern=ID_PATTERN)]
TurnPath = Annotated[str, Path(alias="turnId")]
Limit = Annotated[int, Query(ge=1, le=200)]
CursorText = Annotated[str | None, Query(max_length=400)]
LongCursorText = Annotated[str | None, Query(max_length=2_000)]
"""Of a list whose places hold ids that a model has made."""
