"""What a worker answers at its own port: whether it lives, to anybody; its figures, with the token.

It has no routes of the API, so it is no part of its description.
"""

from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.http.auth import Authenticator


class Figures(Protocol):
    """What a process counts, for Prometheus."""

    @property
    def content_type(self) -> str: ...
    def exposition(self) -> bytes: ...


def worker_app(authenticator: Authenticator, figures: Figures) -> Starlette:
    async def livez(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        asks = authenticator.by_token(request.headers.get("authorization"))
        if asks is None:
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        if not asks.may_read_metrics:
            return Response(status_code=403)
        return Response(figures.exposition(), media_type=figures.content_type)

    return Starlette(routes=[Route("/livez", livez), Route("/metrics", metrics)])
