"""Conversations: what a message to one means, and lists for people."""

from collections.abc import Sequence
from datetime import datetime

from app.ports import (
    AuditEntry,
    Conversation,
    ConversationSummary,
    KeptReply,
    Lookup,
    Scope,
    StoredMessage,
)
from app.ports.fault_points import around
from app.store.change_parts import bring, brought_values
from app.store.deletion import delete_conversation
from app.store.hidden import HIDDEN, HIDDEN_IN
from app.store.message_rows import decode_message
from app.store.pool import Database, Row
from app.store.replies import keep_reply, kept_values, taken_keys
from app.store.statements import Statement
from app.store.statuses import NOT_TERMINAL
from app.store.turn_codec import TURN_COLUMNS, decode_turn, readable
from app.store.turns import stored_turn
from app.turn.ids import ActorId, AgentId, ConversationId, MessageId, TenantId, TurnId
from app.turn.transcript import Message

# One row always comes back: the facts about a conversation that may not exist yet.
LOOK_UP = f"""
SELECT c.tenant_id AS c_tenant_id, c.owner_id, c.agent_id AS c_agent_id, c.title,
       c.created_at AS c_created_at, c.updated_at AS c_updated_at, c.reverted_to,
       r.turn_id AS r_turn_id, r.digest, coalesce(l.position + 1, 0) AS next_position,
       l.position IS NOT NULL AND l.turn_id IS NULL AS ends_imported,
       {TURN_COLUMNS}
FROM (SELECT 1) AS one
LEFT JOIN conversations c ON c.tenant_id = $1 AND c.conversation_id = $2
LEFT JOIN received r ON r.tenant_id = $1 AND r.conversation_id = $2 AND r.message_id = $3
LEFT JOIN LATERAL (
    SELECT m.position, m.turn_id FROM messages m
    WHERE m.tenant_id = $1 AND m.conversation_id = $2
    ORDER BY m.position DESC LIMIT 1
) l ON true
LEFT JOIN turns t ON t.tenant_id = $1 AND t.conversation_id = $2
     AND t.{NOT_TERMINAL}
"""

_PUT = Statement(
    f"""
WITH made AS (
    INSERT INTO conversations (tenant_id, conversation_id, owner_id, agent_id, title,
                               created_at, updated_at)
    VALUES (:tenant_id, :conversation_id, :owner_id, :agent_id, :title, :created_at, :created_at)
    ON CONFLICT (tenant_id, conversation_id) DO NOTHING
    RETURNING tenant_id, conversation_id
),
brought AS ({bring("made")}),
kept AS ({keep_reply("made")}),
audited AS (
    INSERT INTO audit (tenant_id, actor_id, at, action, outcome, conversation_id, request_id)
    SELECT tenant_id, :actor_id, clock_timestamp(), :action, 'accepted', conversation_id,
           :request_id
    FROM made
)
SELECT count(*) FROM made
"""
)

_SUMMARY = f"""
SELECT c.owner_id, c.title, c.agent_id AS c_agent_id, c.created_at AS c_created_at,
       c.updated_at AS c_updated_at, c.tenant_id AS c_tenant_id, c.reverted_to,
       c.conversation_id AS c_conversation_id, {TURN_COLUMNS}
FROM conversations c
LEFT JOIN LATERAL (
    SELECT * FROM turns t
    WHERE t.tenant_id = c.tenant_id AND t.conversation_id = c.conversation_id
    ORDER BY t.created_at DESC, t.turn_id DESC LIMIT 1
) t ON true
WHERE c.tenant_id = $1 AND ($2::text IS NULL OR c.owner_id = $2)
"""

_HAS_COMMANDED = """
SELECT EXISTS (
    SELECT FROM turns t JOIN audit a USING (tenant_id, turn_id)
    WHERE t.tenant_id = $1 AND t.conversation_id = $2
      AND a.actor_id = $3 AND a.outcome = 'accepted' AND a.action = ANY($4)
)
"""

# A round's results may be stored before those in front of them: only the part without a gap shows.
# What is hidden is no gap.
_MESSAGES = f"""
SELECT * FROM (
    SELECT m.*, row_number() OVER (ORDER BY m.position) AS n, {HIDDEN} AS is_hidden
    FROM messages m JOIN conversations c USING (tenant_id, conversation_id)
    WHERE m.tenant_id = $1 AND ($2::text IS NULL OR c.owner_id = $2)
      AND m.conversation_id = $3 AND m.position > $4
    ORDER BY m.position LIMIT $5 + (
        SELECT coalesce(sum(upper(r) - lower(r)), 0)
        FROM conversations h, unnest({HIDDEN_IN.format("h")}) AS r
        WHERE h.tenant_id = $1 AND h.conversation_id = $3)
) page WHERE position = $4 + n AND NOT is_hidden ORDER BY position LIMIT $5
"""


class PostgresConversations:
    """`ports.ConversationStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def look_up(
        self, scope: Scope, conversation_id: ConversationId, message_id: MessageId | None
    ) -> Lookup:
        row = await self._database.row(LOOK_UP, scope.tenant_id, conversation_id, message_id)
        if row is None or row["owner_id"] is None:
            return Lookup(
                conversation=None, foreign=False, received=None, active=None, next_position=0
            )
        if scope.owner_id is not None and row["owner_id"] != scope.owner_id:
            return Lookup(
                conversation=None, foreign=True, received=None, active=None, next_position=0
            )
        received = (TurnId(row["r_turn_id"]), row["digest"]) if row["r_turn_id"] else None
        return Lookup(
            conversation=conversation_of(row, conversation_id),
            foreign=False,
            received=received,
            active=stored_turn(row) if row["turn_id"] else None,
            next_position=row["next_position"],
            ends_imported=row["ends_imported"],
        )

    @around("commit.conversation")
    async def put(
        self,
        conversation: Conversation,
        audit: AuditEntry,
        kept: KeptReply | None = None,
        history: Sequence[Message] = (),
    ) -> bool:
        values = {
            "tenant_id": conversation.tenant_id,
            "conversation_id": conversation.conversation_id,
            "owner_id": conversation.owner_id,
            "agent_id": conversation.agent_id,
            "title": conversation.title,
            "created_at": conversation.created_at,
            "actor_id": audit.actor_id,
            "action": audit.action,
            "request_id": audit.request_id,
            **kept_values(kept),
            **brought_values(history),
        }
        with taken_keys():
            return bool(await self._database.value(_PUT.sql, *_PUT.arguments(values)))

    @around("commit.deletion")
    async def delete(self, conversation_id: ConversationId, audit: AuditEntry) -> bool:
        return await delete_conversation(self._database, conversation_id, audit)

    async def page(
        self, scope: Scope, *, before: tuple[datetime, ConversationId] | None, limit: int
    ) -> Sequence[ConversationSummary]:
        query = f"""{_SUMMARY}
            AND ($3::timestamptz IS NULL OR (c.updated_at, c.conversation_id) < ($3, $4))
            ORDER BY c.updated_at DESC, c.conversation_id DESC LIMIT $5"""
        found: list[ConversationSummary] = []
        while len(found) < limit:
            updated_at, conversation_id = before or (None, None)
            missing = limit - len(found)
            rows = await self._database.rows(
                query, scope.tenant_id, scope.owner_id, updated_at, conversation_id, missing
            )
            found += readable(rows, _summary)
            if len(rows) < missing:
                break
            before = (rows[-1]["c_updated_at"], ConversationId(rows[-1]["c_conversation_id"]))
        return found

    async def summary(
        self, scope: Scope, conversation_id: ConversationId
    ) -> ConversationSummary | None:
        query = f"{_SUMMARY} AND c.conversation_id = $3"
        row = await self._database.row(query, scope.tenant_id, scope.owner_id, conversation_id)
        return None if row is None else _summary(row)

    async def has_commanded(
        self,
        scope: Scope,
        conversation_id: ConversationId,
        actor_id: ActorId,
        actions: Sequence[str],
    ) -> bool:
        return bool(
            await self._database.value(
                _HAS_COMMANDED, scope.tenant_id, conversation_id, actor_id, list(actions)
            )
        )

    async def messages(
        self, scope: Scope, conversation_id: ConversationId, *, after: int, limit: int
    ) -> Sequence[StoredMessage]:
        rows = await self._database.rows(
            _MESSAGES, scope.tenant_id, scope.owner_id, conversation_id, after, limit
        )
        return [
            StoredMessage(
                position=row["position"],
                turn_id=TurnId(row["turn_id"]) if row["turn_id"] else None,
                created_at=row["created_at"],
                message=decode_message(row),
            )
            for row in rows
        ]


def conversation_of(row: Row, conversation_id: ConversationId) -> Conversation:
    return Conversation(
        tenant_id=TenantId(row["c_tenant_id"]),
        conversation_id=conversation_id,
        owner_id=ActorId(row["owner_id"]),
        agent_id=AgentId(row["c_agent_id"]),
        title=row["title"],
        created_at=row["c_created_at"],
        updated_at=row["c_updated_at"],
        reverted_to=row["reverted_to"],
    )


def _summary(row: Row) -> ConversationSummary:
    newest = decode_turn(row) if row["turn_id"] else None
    return ConversationSummary(
        conversation=conversation_of(row, ConversationId(row["c_conversation_id"])),
        active=None if newest is None or newest.is_terminal else newest,
        last=newest,
    )
