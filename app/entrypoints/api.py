"""The ASGI application: which middleware in which order, which routers, one error table."""

from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.console.router import router as console
from app.entrypoints.wiring import Runtime
from app.http import error_handlers
from app.http.audit import CommandAudit
from app.http.auth import Authentication
from app.http.idempotency import IdempotencyKeys
from app.http.open_streams import OpenStreams
from app.http.openapi import DescribedApi
from app.http.request_context import RequestContext
from app.http.sse import Frames
from app.routers import (
    agents,
    cancelling,
    conversations,
    events,
    external_calls,
    forks,
    health,
    inbox,
    messages,
    metrics,
    queue,
    resume,
    resume_points,
    reverts,
    sign_in,
    starts,
    turns,
    usage,
)
from app.routers.deps import AppState

ROUTED = (
    conversations,
    resume_points,
    reverts,
    messages,
    queue,
    turns,
    cancelling,
    starts,
    resume,
    forks,
    inbox,
    external_calls,
    events,
    usage,
    agents,
    health,
    metrics,
    sign_in,
)


def create_app(runtime: Runtime) -> FastAPI:
    """The application over what `wiring.build` has built."""
    app = routes()
    error_handlers.install(app, runtime.services)
    app.state.turnkeeper = AppState(
        services=runtime.services,
        authenticator=runtime.authenticator,
        login_codes=runtime.login_codes,
        frames=Frames(),
        open_streams=OpenStreams(runtime.stream_limits),
        stopping=runtime.stopping,
        figures=runtime.metrics,
    )
    # The last one added is the outermost.
    app.add_middleware(IdempotencyKeys, replies=runtime.replies)
    app.add_middleware(CommandAudit, audit=runtime.services.audit)
    app.add_middleware(Authentication, authenticator=runtime.authenticator)
    app.add_middleware(RequestContext)
    return app


def routes() -> FastAPI:
    """The routes alone: what openapi/openapi.json is made from."""
    app = DescribedApi(
        title="Turnkeeper",
        version="0.1.0",
        summary="Runs turns of AI agents and never loses one.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    for module in ROUTED:
        app.include_router(module.router)
    app.include_router(console, include_in_schema=False)
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name
