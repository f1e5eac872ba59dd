"""Deleting a conversation: every row of it in every table, in one statement.

Every table stands here under what its rows are found by, which an index begins with; a test
compares that with the tables there are. The audit is left alone: it holds ids and no content.

Nothing is written beside it. First the turns are locked, then the conversation, in the order in
which commands take them; whoever holds one is waited for, and a turn that would begin, a command or
a reply that would be kept waits for the deletion and finds nothing more. Only then are the rows
looked for, by a statement that sees what was written until then.
"""

from collections.abc import Iterator
from typing import Final

from app.ports import AuditEntry
from app.store.pool import Database
from app.store.statuses import NOT_TERMINAL
from app.turn.ids import ConversationId


async def delete_conversation(
    database: Database, conversation_id: ConversationId, audit: AuditEntry
) -> bool:
    """Whether the conversation is gone: not so while it has a turn that has not ended."""
    of_it = audit.tenant_id, conversation_id
    async with database.together() as alone:
        for lock in _LOCKS:
            await alone.execute(lock, *of_it)
        gone = await alone.value(DELETE, *of_it, audit.actor_id, audit.action, audit.request_id)
    return bool(gone)


BY_CONVERSATION: Final = (
    "context_summaries",
    "turns",
    "received",
    "messages",
    "idempotency_keys",
    "conversations",
)
"""Tables whose rows are found by the conversation, those that refer to others in front."""
BY_TURN: Final = (
    "tool_interruptions",
    "model_failures",
    "late_results",
    "external_calls",
    "approvals",
    "turn_events",
    "model_usage",
)
"""Tables whose rows are found by their turn; none of them is referred to."""
STAYS: Final = frozenset({"agents", "audit"})
"""Agents are nobody's conversation; the audit outlives them all."""


def _deletions() -> Iterator[str]:
    for table in BY_TURN:
        yield (
            f"deleted_{table} AS (DELETE FROM {table} x USING ended, turns_of_it t "
            "WHERE x.turn_id = t.turn_id RETURNING 1)"
        )
    for table in BY_CONVERSATION:
        yield (
            f"deleted_{table} AS (DELETE FROM {table} x USING ended "
            "WHERE x.tenant_id = $1 AND x.conversation_id = $2 RETURNING 1)"
        )


_OF_SEVERAL = r"""
deleted_replies_of_several AS (
    DELETE FROM idempotency_keys x USING ended
    WHERE x.tenant_id = $1 AND x.conversation_id IS NULL
      AND strpos(x.reply, '\"conversationId\":\"' || $2 || '\"') > 0
)
"""
"""Replies to keyed claims: one of them may hold calls of several conversations, and names none."""

_LOCKS = [
    f"SELECT FROM {table} WHERE tenant_id = $1 AND conversation_id = $2 FOR UPDATE"
    for table in ("turns", "conversations")
]
DELETE = f"""
WITH turns_of_it AS (
    SELECT turn_id, status FROM turns WHERE tenant_id = $1 AND conversation_id = $2
),
ended AS (SELECT WHERE NOT EXISTS (SELECT FROM turns_of_it WHERE {NOT_TERMINAL})),
{", ".join(_deletions())},
{_OF_SEVERAL},
audited AS (
    INSERT INTO audit (tenant_id, actor_id, at, action, outcome, conversation_id, request_id)
    SELECT $1, $3, clock_timestamp(), $4, 'accepted', $2, $5 FROM deleted_conversations
)
SELECT count(*) FROM deleted_conversations
"""
