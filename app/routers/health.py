"""`/livez` and `/readyz`, for whoever restarts or routes to this process; no sign-in."""

from fastapi import APIRouter, Request, Response

from app.http.problems import problem
from app.ports import StoreUnavailable
from app.routers.deps import ServicesDep
from app.turn.ids import TurnId

router = APIRouter(tags=["health"])


@router.get("/livez")
async def is_alive() -> dict[str, str]:
    return {"status": "alive"}


@router.get("/readyz", response_model=None)
async def is_ready(request: Request, services: ServicesDep) -> dict[str, str] | Response:
    """Ready when the database answers."""
    try:
        await services.turns.load(TurnId("readyz"))
    except StoreUnavailable:
        return problem("store_unavailable", "the database does not answer", request.scope)
    return {"status": "ready"}
