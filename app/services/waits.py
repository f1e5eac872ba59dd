"""What waits for somebody, over all conversations: the inbox."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from app.ports import Scope, WaitingTurn, WaitKind
from app.services.deps import Caller, Services
from app.services.errors import Forbidden
from app.services.principal import Principal
from app.turn.ids import TurnId

Whose: TypeAlias = Literal["me", "tenant"]
"""`me`: what is the caller's own, and for an operator also every approval and outside call of the
tenant, which they may answer as well as anybody. `tenant`: all there is."""

FOR_ANYBODY: frozenset[WaitKind] = frozenset({"TOOL_APPROVAL", "EXTERNAL_TOOL"})
"""What somebody else than the owner of a conversation can answer."""


async def list_waiting(
    services: Services,
    caller: Caller,
    *,
    whose: Whose,
    after: tuple[datetime, TurnId] | None,
    limit: int,
) -> Sequence[WaitingTurn]:
    """Turns that wait, those that have waited longest first.

    Raises:
        Forbidden: the tenant's are for operators.
    """
    principal = caller.principal
    if whose == "tenant" and not principal.is_operator:
        raise Forbidden("what waits in the whole tenant is for operators to see")
    own = Scope(tenant_id=principal.tenant_id, owner_id=principal.actor_id)
    return await services.waits.waiting(
        principal.scope if whose == "tenant" else own,
        with_calls_of_others=principal.is_operator,
        after=after,
        limit=limit,
    )


def is_for(principal: Principal, whose: Whose, turn: WaitingTurn, kind: WaitKind) -> bool:
    """Whether one thing that the turn waits for belongs into the list."""
    is_own = turn.owner_id == principal.actor_id
    return whose == "tenant" or is_own or kind in FOR_ANYBODY
