"""Commands without an effect: there is no commit that their audit row could be part of."""

from app.ports import AuditEntry
from app.store.pool import Database

_RECORD = """
INSERT INTO audit (tenant_id, actor_id, at, action, outcome, code, conversation_id, turn_id,
                   failure_id, request_id)
VALUES ($1, $2, clock_timestamp(), $3, $4, $5, $6, $7, $8, $9)
"""


class PostgresAudit:
    """`ports.AuditLog` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, entry: AuditEntry) -> None:
        await self._database.execute(
            _RECORD,
            entry.tenant_id,
            entry.actor_id,
            entry.action,
            entry.outcome,
            entry.code,
            entry.conversation_id,
            entry.turn_id,
            entry.failure_id,
            entry.request_id,
        )
