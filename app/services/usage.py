"""What model calls have cost: a tenant's for its operators, everybody else's their own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.ports import Figure, Spending
from app.services.deps import Caller, Services
from app.services.errors import PayloadInvalid
from app.turn.ids import AgentId

_MORE_THAN_A_MONTH = timedelta(days=32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was spent from `since` to before `until`."""

    since: datetime
    until: datetime
    agents: Mapping[AgentId, Spending]

    @property
    def total(self) -> Spending:
        """Over all agents."""
        each = self.agents.values()
        return Spending(
            attempts=sum(one.attempts for one in each),
            successes=sum(one.successes for one in each),
            input_tokens=_sum(one.input_tokens for one in each),
            cached_input_tokens=_sum(one.cached_input_tokens for one in each),
            output_tokens=_sum(one.output_tokens for one in each),
        )


async def spent(
    services: Services, caller: Caller, *, since: datetime | None, until: datetime | None
) -> Spent:
    """Over the model calls that ended in that time; without one, in this month of UTC.

    Raises:
        PayloadInvalid: the time does not end after it begins, or only one end of it is given.
    """
    if since is None and until is None:
        since, until = _month(services.clock())
    if since is None or until is None:
        raise PayloadInvalid("give both 'from' and 'to', or neither for this month")
    if until <= since:
        raise PayloadInvalid("'to' must be later than 'from'; it is not part of the time")
    agents = await services.usage.by_agent(caller.principal.scope, since=since, until=until)
    return Spent(since=since, until=until, agents=agents)


def _month(now: datetime) -> tuple[datetime, datetime]:
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return first, (first + _MORE_THAN_A_MONTH).replace(day=1)


def _sum(figures: Iterable[Figure]) -> Figure:
    """What is known is added up; without anything known the sum is not known either."""
    each = list(figures)
    known = [one.known for one in each if one.known is not None]
    return Figure(
        known=sum(known) if known else None,
        attempts_without=sum(one.attempts_without for one in each),
    )
