"""`/livez` and `/readyz`, for whoever restarts or routes to this process; no sign-in."""

from fastapi import APIRouter, Request, Response

from app.http.openapi import may_answer
from app.http.problems import problem
from app.ports import StoreUnavailable
from app.routers.deps import ServicesDep
from app.turn.ids import TurnId

router = APIRouter(tags=["health"])


@router.get("/livez")
@router.head("/livez", include_in_schema=False)
async def is_alive() -> dict[str, str]:
    return {"status": "alive"}


@router.get("/readyz", response_model=None, openapi_extra=may_answer("store_unavailable"))
@router.head("/readyz", response_model=None, include_in_schema=False)
async def is_ready(request: Request, services: ServicesDep) -> dict[str, str] | Response:
    """Ready when the database answers."""
    try:
        await services.turns.load(TurnId("readyz"))
    except StoreUnavailable:
        return problem("store_unavailable", "the database does not answer", request.scope)
    return {"status": "ready"}
