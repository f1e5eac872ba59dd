"""Calls with outside tools: a list of them, and who has taken which.

A claim is a courtesy between executors, kept by the database's clock: it says who is at it, and
says nothing about whose result counts. `SKIP LOCKED` lets two of them ask at once and get different
calls; the condition stands inside the locked sub-select, so a call is never taken twice while the
lease of the first lasts.
"""

from collections.abc import Sequence
from datetime import datetime

from app.ports import (
    AuditEntry,
    ExternalCall,
    ExternalClaim,
    ExternalStatus,
    KeepClaimed,
    Scope,
)
from app.ports.fault_points import around
from app.store.pool import Database, Row
from app.store.replies import keep_alone
from app.turn.ids import AgentId, CallId, ConversationId, TurnId

_COLUMNS = """
e.turn_id, e.call_id, e.conversation_id, e.agent_id, e.tool_name, e.arguments, e.max_result_bytes,
e.requested_at, e.expires_at, e.status, e.claims, e.claimed_by, e.claimed_until, e.closed_at
"""

_IN_SCOPE = """
e.tenant_id = $1
  AND ($2::text IS NULL OR EXISTS (
      SELECT FROM conversations c
      WHERE (c.tenant_id, c.conversation_id) = (e.tenant_id, e.conversation_id)
        AND c.owner_id = $2))
  AND (cardinality($3::text[]) = 0 OR e.tool_name = ANY($3))
"""
"""Of a tenant ($1), of an owner in it or of all ($2), of some tools or of any ($3)."""

_PAGE = f"""
SELECT {_COLUMNS} FROM external_calls e
WHERE {_IN_SCOPE}
  AND ($4::text IS NULL OR e.status = $4)
  AND ($5::timestamptz IS NULL OR (e.requested_at, e.turn_id, e.call_id) > ($5, $6, $7))
ORDER BY e.requested_at, e.turn_id, e.call_id LIMIT $8
"""

CLAIM = f"""
WITH free AS (
    SELECT e.turn_id, e.call_id FROM external_calls e
    WHERE {_IN_SCOPE}
      AND e.status = 'open'
      AND (e.claimed_until IS NULL OR e.claimed_until <= clock_timestamp())
      AND (e.expires_at IS NULL OR e.expires_at > clock_timestamp())
    ORDER BY e.requested_at, e.turn_id, e.call_id
    LIMIT $4
    FOR UPDATE SKIP LOCKED
),
claimed AS (
    UPDATE external_calls e
    SET claimed_by = $5, claimed_until = clock_timestamp() + make_interval(secs => $6),
        claims = e.claims + 1
    FROM free WHERE (e.turn_id, e.call_id) = (free.turn_id, free.call_id)
    RETURNING {_COLUMNS}, e.tenant_id
),
audited AS (
    INSERT INTO audit (tenant_id, actor_id, at, action, outcome, conversation_id, turn_id, call_id,
                       request_id)
    SELECT tenant_id, $7, clock_timestamp(), $8, 'accepted', conversation_id, turn_id, call_id, $9
    FROM claimed
)
SELECT * FROM claimed ORDER BY requested_at, turn_id, call_id
"""
"""So many ($4) for an executor ($5), for so many seconds ($6); for the audit: $7 to $9."""


class PostgresExternalCalls:
    """`ports.ExternalCallStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        scope: Scope,
        *,
        status: ExternalStatus | None,
        tools: Sequence[str],
        after: tuple[datetime, TurnId, CallId] | None,
        limit: int,
    ) -> Sequence[ExternalCall]:
        place = after or (None, None, None)
        rows = await self._database.rows(
            _PAGE, scope.tenant_id, scope.owner_id, list(tools), status, *place, limit
        )
        return [_call(row) for row in rows]

    @around("commit.taken_outside")
    async def claim(
        self, scope: Scope, wanted: ExternalClaim, audit: AuditEntry, keep: KeepClaimed
    ) -> Sequence[ExternalCall]:
        async with self._database.together() as database:
            rows = await database.rows(
                CLAIM,
                scope.tenant_id,
                scope.owner_id,
                list(wanted.tools),
                wanted.limit,
                wanted.executor,
                wanted.lease_seconds,
                audit.actor_id,
                audit.action,
                audit.request_id,
            )
            claimed = [_call(row) for row in rows]
            kept = keep(claimed)
            if kept is not None:
                await keep_alone(database, (audit.tenant_id, audit.actor_id), kept)
        return claimed


def _call(row: Row) -> ExternalCall:
    return ExternalCall(
        turn_id=TurnId(row["turn_id"]),
        call_id=CallId(row["call_id"]),
        conversation_id=ConversationId(row["conversation_id"]),
        agent_id=AgentId(row["agent_id"]),
        tool_name=row["tool_name"],
        arguments=row["arguments"],
        max_result_bytes=row["max_result_bytes"],
        requested_at=row["requested_at"],
        expires_at=row["expires_at"],
        status=row["status"],
        claims=row["claims"],
        claimed_by=row["claimed_by"],
        claimed_until=row["claimed_until"],
        closed_at=row["closed_at"],
    )
