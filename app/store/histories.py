"""Histories: where a conversation ends, what a fork takes of one, and what a revert hides.

Race it survives. A revert and a message at the same time: both write the conversation's row, and
the revert writes it only as it has seen it. So it never hides what it has not seen, and the message
makes final what it finds.
"""

from collections.abc import Sequence
from datetime import datetime

from app.ports import AuditEntry, Conversation, KeptReply, Scope, Standing, StoredTurn
from app.ports.fault_points import around
from app.store.conversations import conversation_of
from app.store.hidden import HIDDEN, HIDDEN_IN
from app.store.message_rows import MESSAGE_COLUMNS, decode_message
from app.store.pool import Database, Row
from app.store.replies import keep_reply, kept_values, taken_keys
from app.store.statements import Statement
from app.store.turn_codec import TURN_COLUMNS
from app.store.turns import stored_turn
from app.turn.ids import ConversationId, MessageId
from app.turn.state import Turn
from app.turn.transcript import Message

_HIDDEN_IN_C = HIDDEN_IN.format("c")

_STANDING = f"""
SELECT c.owner_id, c.title, c.agent_id AS c_agent_id, c.created_at AS c_created_at,
       c.updated_at AS c_updated_at, c.tenant_id AS c_tenant_id, c.reverted_to, {TURN_COLUMNS},
       t.status = 'RUNNING' AND t.claimed_by IS NOT NULL
           AND t.claimed_until <= clock_timestamp() AS is_lost,
       coalesce(l.position + 1, 0) AS next_position,
       coalesce(l.position <@ {_HIDDEN_IN_C}, false) AS end_is_hidden
FROM conversations c
LEFT JOIN LATERAL (
    SELECT * FROM turns t
    WHERE t.tenant_id = c.tenant_id AND t.conversation_id = c.conversation_id
    ORDER BY t.created_at DESC, t.turn_id DESC LIMIT 1
) t ON true
LEFT JOIN LATERAL (
    SELECT m.position FROM messages m
    WHERE m.tenant_id = c.tenant_id AND m.conversation_id = c.conversation_id
    ORDER BY m.position DESC LIMIT 1
) l ON true
WHERE c.tenant_id = $1 AND ($2::text IS NULL OR c.owner_id = $2) AND c.conversation_id = $3
"""

# The last message that says where a history can be resumed, and all behind it.
_END = f"""
SELECT {MESSAGE_COLUMNS}, m.turn_id
FROM messages m JOIN conversations c USING (tenant_id, conversation_id)
WHERE m.tenant_id = $1 AND m.conversation_id = $2 AND NOT {HIDDEN}
  AND m.position >= coalesce((
      SELECT d.position FROM messages d
      WHERE d.tenant_id = $1 AND d.conversation_id = $2
        AND d.role NOT IN ('tool', 'closing', 'question', 'system')
        AND NOT d.position <@ {_HIDDEN_IN_C}
      ORDER BY d.position DESC LIMIT 1), 0)
ORDER BY m.position
"""

# What was hidden before the turn began it has not seen; what was hidden later it has.
_UP_TO = f"""
SELECT {MESSAGE_COLUMNS}
FROM messages m JOIN conversations c USING (tenant_id, conversation_id)
WHERE m.tenant_id = $1 AND m.conversation_id = $2 AND m.position < $4
  AND NOT EXISTS (
      SELECT FROM unnest({_HIDDEN_IN_C}) AS r
      WHERE m.position <@ r AND upper(r) <= coalesce(
          (SELECT min(o.position) FROM messages o
           WHERE o.tenant_id = $1 AND o.conversation_id = $2 AND o.turn_id = $3), $4))
ORDER BY m.position
"""

_BEHIND = """
SELECT m.position + 1 AS first,
       (SELECT max(a.position) + 1 FROM messages a
        WHERE a.tenant_id = $1 AND a.conversation_id = $2) AS free
FROM messages m JOIN conversations c USING (tenant_id, conversation_id)
WHERE m.tenant_id = $1 AND m.conversation_id = $2 AND m.message_id = $3 AND m.role = 'user'
  AND NOT m.position <@ c.hidden
ORDER BY m.position DESC LIMIT 1
"""

_HIDE = Statement(
    f"""
WITH moved AS (
    UPDATE conversations
    SET reverted = int4range(CAST(:first AS int), CAST(:free AS int)), reverted_to = :to,
        updated_at = :at
    WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id AND updated_at = :seen
    RETURNING tenant_id, conversation_id
),
kept AS ({keep_reply("moved")}),
audited AS (
    INSERT INTO audit (tenant_id, actor_id, at, action, outcome, conversation_id, request_id)
    SELECT tenant_id, :actor_id, clock_timestamp(), :action, 'accepted', conversation_id,
           :request_id
    FROM moved
)
SELECT count(*) FROM moved
"""
)


class PostgresHistories:
    """`ports.HistoryStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing(self, scope: Scope, conversation_id: ConversationId) -> Standing | None:
        row = await self._database.row(_STANDING, scope.tenant_id, scope.owner_id, conversation_id)
        if row is None:
            return None
        end = await self._database.rows(_END, scope.tenant_id, conversation_id)
        newest = stored_turn(row) if row["turn_id"] else None
        active = newest if newest and not newest.turn.is_terminal else None
        return Standing(
            conversation=conversation_of(row, conversation_id),
            active=active,
            is_lost=active is not None and row["is_lost"],
            last=await self._of_the_end(end) if row["end_is_hidden"] else newest,
            end=[decode_message(message) for message in end],
            next_position=row["next_position"],
        )

    async def _of_the_end(self, end: Sequence[Row]) -> StoredTurn | None:
        """The turn that has said the last thing that is not hidden."""
        turn_id = end[-1]["turn_id"] if end else None
        query = f"SELECT {TURN_COLUMNS} FROM turns t WHERE t.turn_id = $1"
        row = await self._database.row(query, turn_id)
        return None if row is None else stored_turn(row)

    async def up_to(self, turn: Turn) -> Sequence[Message]:
        identity = turn.identity
        rows = await self._database.rows(
            _UP_TO,
            identity.tenant_id,
            identity.conversation_id,
            identity.turn_id,
            turn.next_position,
        )
        return [decode_message(row) for row in rows]

    async def behind(
        self, conversation: Conversation, message_id: MessageId
    ) -> tuple[int, int] | None:
        row = await self._database.row(
            _BEHIND, conversation.tenant_id, conversation.conversation_id, message_id
        )
        return None if row is None else (row["first"], row["free"])

    @around("commit.revert")
    async def hide(
        self,
        conversation: Conversation,
        places: tuple[int, int],
        *,
        to: MessageId | None,
        at: datetime,
        audit: AuditEntry,
        kept: KeptReply | None,
    ) -> bool:
        values = {
            "tenant_id": conversation.tenant_id,
            "conversation_id": conversation.conversation_id,
            "seen": conversation.updated_at,
            "first": places[0],
            "free": places[1],
            "to": to,
            "at": at,
            "actor_id": audit.actor_id,
            "action": audit.action,
            "request_id": audit.request_id,
            **kept_values(kept),
        }
        with taken_keys():
            return bool(await self._database.value(_HIDE.sql, *_HIDE.arguments(values)))
