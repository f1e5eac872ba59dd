"""Calls with outside tools, for whoever carries them out."""

from collections.abc import Sequence
from datetime import datetime

from app.ports import ExternalCall, ExternalClaim, ExternalStatus, KeepClaimed
from app.services.deps import Caller, Services
from app.turn.ids import CallId, TurnId


async def list_calls(
    services: Services,
    caller: Caller,
    *,
    status: ExternalStatus | None,
    tools: Sequence[str],
    after: tuple[datetime, TurnId, CallId] | None,
    limit: int,
) -> Sequence[ExternalCall]:
    """Oldest first; operators see their tenant's, everybody else those of their own turns."""
    return await services.external_calls.page(
        caller.principal.scope, status=status, tools=tools, after=after, limit=limit
    )


async def claim_calls(
    services: Services, caller: Caller, wanted: ExternalClaim, keep: KeepClaimed
) -> Sequence[ExternalCall]:
    """Open calls that nobody else is at, taken for a while; whose result counts is not decided.

    Raises:
        KeyTaken: a request with the same Idempotency-Key took effect first.
    """
    audit = caller.entry("CLAIM_EXTERNAL_CALLS")
    return await services.external_calls.claim(caller.principal.scope, wanted, audit, keep)
