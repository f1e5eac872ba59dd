"""Calls with outside tools, in and out."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from app.ports import ExternalCall, ExternalClaim, ExternalStatus
from app.routers.wait_schemas import idempotency_key
from app.routers.wire import Input, Line, Output

ToolName = Annotated[Line, Field(min_length=1, max_length=200)]


class ClaimBody(Input):
    """What an executor is ready to do."""

    executor: Annotated[Line, Field(min_length=1, max_length=200)] = Field(
        description="Who takes the calls; shown to people."
    )
    tools: Annotated[list[ToolName], Field(max_length=100)] = Field(
        default=[], description="Only calls of these tools; none named: of any."
    )
    limit: int = Field(default=1, ge=1, le=100, description="How many calls at most.")
    lease_seconds: int = Field(
        default=60, ge=1, le=86_400, description="For how long nobody else is given them."
    )


class ExternalCallOutput(Output):
    """A call that an outside tool is to do, or has done."""

    turn_id: str
    call_id: str
    conversation_id: str
    agent_id: str
    tool_name: str
    arguments: str
    """A JSON object as text, exactly as the model wrote it."""
    idempotency_key: str
    """The same however often the call is claimed: under it the call is done once."""
    max_result_bytes: int
    status: ExternalStatus
    requested_at: datetime
    expires_at: datetime | None
    """From then on no result is taken."""
    attempt: int
    """Times that it was claimed; 0: not yet."""
    claimed_by: str | None
    claimed_until: datetime | None
    closed_at: datetime | None


class ExternalCallPage(Output):
    items: list[ExternalCallOutput]
    next_cursor: str | None


class ClaimedCalls(Output):
    items: list[ExternalCallOutput]
    """Empty when there is nothing to do."""


def claim_of(body: ClaimBody) -> ExternalClaim:
    """The claim as the use case takes it."""
    return ExternalClaim(
        executor=body.executor,
        tools=body.tools,
        limit=body.limit,
        lease_seconds=body.lease_seconds,
    )


def call_outputs(calls: Sequence[ExternalCall]) -> list[ExternalCallOutput]:
    return [
        ExternalCallOutput(
            turn_id=call.turn_id,
            call_id=call.call_id,
            conversation_id=call.conversation_id,
            agent_id=call.agent_id,
            tool_name=call.tool_name,
            arguments=call.arguments,
            idempotency_key=idempotency_key(call.turn_id, call.call_id),
            max_result_bytes=call.max_result_bytes,
            status=call.status,
            requested_at=call.requested_at,
            expires_at=call.expires_at,
            attempt=call.claims,
            claimed_by=call.claimed_by,
            claimed_until=call.claimed_until,
            closed_at=call.closed_at,
        )
        for call in calls
    ]
