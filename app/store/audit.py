"""Commands without an effect: there is no commit that their audit row could be part of."""

from app.ports import AuditEntry, KeptReply
from app.ports.fault_points import around
from app.store.pool import Database
from app.store.replies import keep_reply, kept_values, taken_keys
from app.store.statements import Statement

# A reply shows what a conversation holds: of one that is being deleted none is kept behind it.
_RECORD = Statement(
    f"""
WITH named AS (
    SELECT tenant_id, conversation_id FROM conversations
    WHERE tenant_id = :tenant_id AND conversation_id = CAST(:conversation_id AS text)
    FOR KEY SHARE
),
asked AS (
    SELECT tenant_id, conversation_id FROM named
    UNION ALL
    SELECT :tenant_id, NULL WHERE CAST(:conversation_id AS text) IS NULL
),
kept AS ({keep_reply("asked")})
INSERT INTO audit (tenant_id, actor_id, at, action, outcome, code, conversation_id, turn_id,
                   failure_id, call_id, request_id, changes)
VALUES (:tenant_id, :actor_id, clock_timestamp(), :action, :outcome, :code, :conversation_id,
        :turn_id, :failure_id, :call_id, :request_id, :changes)
"""
)


class PostgresAudit:
    """`ports.AuditLog` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @around("commit.audit")
    async def record(self, entry: AuditEntry, kept: KeptReply | None = None) -> None:
        values = {
            "tenant_id": entry.tenant_id,
            "actor_id": entry.actor_id,
            "action": entry.action,
            "outcome": entry.outcome,
            "code": entry.code,
            "conversation_id": entry.conversation_id,
            "turn_id": entry.turn_id,
            "failure_id": entry.failure_id,
            "call_id": entry.call_id,
            "request_id": entry.request_id,
            "changes": entry.changes,
            **kept_values(kept),
        }
        with taken_keys():
            await self._database.execute(_RECORD.sql, *_RECORD.arguments(values))
