"""Who is asking."""

from dataclasses import dataclass
from enum import StrEnum

from app.ports import Scope
from app.turn.ids import ActorId, TenantId


class Role(StrEnum):
    """What a principal may see and do; more roles come with more kinds of sign-in."""

    OPERATOR = "operator"
    USER = "user"
    VIEWER = "viewer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated caller. Nothing is allowed to a request that has none."""

    tenant_id: TenantId
    actor_id: ActorId
    role: Role
    runs_the_installation: bool = False
    """Whether they look after the service itself, over the borders of tenants."""

    @property
    def scope(self) -> Scope:
        """Operators see their whole tenant, everybody else what is theirs."""
        owner = None if self.is_operator else self.actor_id
        return Scope(tenant_id=self.tenant_id, owner_id=owner)

    @property
    def is_operator(self) -> bool:
        """Whether they look after their tenant, not after conversations of their own alone."""
        return self.role is Role.OPERATOR

    @property
    def may_command(self) -> bool:
        return self.role in {Role.OPERATOR, Role.USER}

    @property
    def may_read_metrics(self) -> bool:
        """Figures are over all tenants, so a tenant's operator is not enough."""
        return self.is_operator and self.runs_the_installation

    @property
    def sees_provider_details(self) -> bool:
        return self.is_operator
