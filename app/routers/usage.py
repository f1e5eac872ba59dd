"""`GET /usage`: tokens by agent, over a time."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from app.http.openapi import may_answer
from app.ports import Spending
from app.routers.deps import CallerDep, ServicesDep
from app.routers.wire import Output
from app.services.usage import spent

router = APIRouter(prefix="/usage", tags=["usage"])

_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def _instant(value: object) -> datetime:
    message = "an RFC 3339 time with its zone, such as 2026-03-01T00:00:00Z (write + as %2B)"
    if not (isinstance(value, str) and _RFC_3339.fullmatch(value)):
        raise ValueError(message)
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(message) from error


Instant = Annotated[datetime, BeforeValidator(_instant)]


class UnknownOutput(Output):
    """How many of the attempts each sum leaves out, because nobody said."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int


class SpendingOutput(Output):
    """Model calls that have ended, and their tokens."""

    model_attempts: int
    """Requests, failed and lost ones included."""
    model_successes: int
    input_tokens: int | None
    """Cached or not; null when no attempt's figure is known, like the next two."""
    cached_input_tokens: int | None
    output_tokens: int | None
    attempts_without: UnknownOutput


class AgentSpendingOutput(SpendingOutput):
    agent_id: str


class UsageReport(Output):
    since: Annotated[datetime, Field(alias="from")]
    until: Annotated[datetime, Field(alias="to")]
    """Not part of the time."""
    total: SpendingOutput
    agents: list[AgentSpendingOutput]
    """In the order of their ids; only those that were asked something."""


@router.get("", openapi_extra=may_answer("payload_invalid"))
async def read_usage(
    services: ServicesDep,
    caller: CallerDep,
    since: Annotated[
        Instant | None, Query(alias="from", description="RFC 3339; with `to`.")
    ] = None,
    until: Annotated[
        Instant | None, Query(alias="to", description="RFC 3339, exclusive; with `from`.")
    ] = None,
) -> UsageReport:
    """Over the model calls that ended in that time; without one, in this month of UTC.

    Operators see their tenant's, everybody else what their own conversations have cost.
    """
    found = await spent(services, caller, since=since, until=until)
    return UsageReport(
        since=found.since,
        until=found.until,
        total=SpendingOutput(**_fields(found.total)),
        agents=[
            AgentSpendingOutput(agent_id=agent_id, **_fields(spending))
            for agent_id, spending in found.agents.items()
        ],
    )


def _fields(spending: Spending) -> dict[str, Any]:
    figures = {
        "input_tokens": spending.input_tokens,
        "cached_input_tokens": spending.cached_input_tokens,
        "output_tokens": spending.output_tokens,
    }
    unknown = {name: figure.attempts_without for name, figure in figures.items()}
    return {
        "model_attempts": spending.attempts,
        "model_successes": spending.successes,
        **{name: figure.known for name, figure in figures.items()},
        "attempts_without": UnknownOutput(**unknown),
    }
