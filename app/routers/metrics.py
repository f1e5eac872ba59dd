"""`/metrics`, for Prometheus; with the installation's own token."""

from fastapi import APIRouter, Response

from app.http.openapi import may_answer
from app.routers.deps import CallerDep, StateDep
from app.services.errors import Forbidden

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Counters of this process in Prometheus' text form.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
    openapi_extra=may_answer("forbidden"),
)
async def read_metrics(state: StateDep, caller: CallerDep) -> Response:
    """Counts what this process has seen; a worker has the same at its own port."""
    if not caller.principal.may_read_metrics:
        raise Forbidden("figures over all tenants are for whoever runs the installation")
    figures = state.figures
    return Response(figures.exposition(), media_type=figures.content_type)
