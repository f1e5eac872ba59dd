"""Feeds: the looks that are shared by everybody who follows, and the upkeep of the journal.

The upkeep touches turns that have ended, so nobody writes to them; two housekeepers that meet do
the same thing twice. It never raises a turn's version: what a reader is given stays the same, but
for the pieces in which it comes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from app.ports import JournalRow, StoredTurn
from app.ports.fault_points import around
from app.store.pool import Database
from app.store.statuses import TERMINATED, UNFOLDED, UNPRUNED
from app.store.turn_codec import TURN_COLUMNS
from app.store.turns import PostgresTurns, stored_turn
from app.turn.ids import ConversationId, TenantId, TurnId

VERSIONS = "SELECT turn_id, version FROM turns WHERE turn_id = ANY($1::text[])"
NEWEST = """
SELECT c.tenant_id, c.conversation_id, coalesce(t.number, 0) AS number
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, conversation_id)
JOIN conversations c USING (tenant_id, conversation_id)
LEFT JOIN LATERAL (
    SELECT t.number FROM turns t
    WHERE t.tenant_id = c.tenant_id AND t.conversation_id = c.conversation_id
    ORDER BY t.number DESC LIMIT 1
) t ON true
"""
TURN_FROM = f"""
SELECT {TURN_COLUMNS} FROM turns t
WHERE t.tenant_id = $1 AND t.conversation_id = $2 AND t.number >= $3 ORDER BY t.number LIMIT 1
"""
TO_FOLD = f"""
SELECT turn_id FROM turns
WHERE {TERMINATED} AND {UNFOLDED} AND created_at < $1 AND updated_at < $1
ORDER BY created_at LIMIT $2
"""
_FOLD = """
WITH gone AS (DELETE FROM turn_events WHERE turn_id = $1 AND sequence = ANY($2::int[]))
UPDATE turns SET is_folded = true WHERE turn_id = $1
"""
# The row with the end stays, so that every reader still learns of it. Where that is the only one,
# nothing was pruned, and -1 says that it was looked at.
PRUNE = f"""
WITH old AS (
    SELECT turn_id FROM turns
    WHERE {UNPRUNED} AND created_at < $1 AND updated_at < $1 ORDER BY created_at LIMIT $2
),
last AS (
    SELECT o.turn_id, e.sequence, e.kept FROM old o CROSS JOIN LATERAL (
        SELECT j.sequence, json_array_length(j.events::json) AS kept FROM turn_events j
        WHERE j.turn_id = o.turn_id ORDER BY j.sequence DESC LIMIT 1
    ) e
),
gone AS (
    DELETE FROM turn_events j USING last
    WHERE j.turn_id = last.turn_id AND j.sequence < last.sequence
),
marked AS (
    UPDATE turns t SET pruned_through = coalesce(nullif(last.sequence - last.kept, 0), -1)
    FROM last
    WHERE t.turn_id = last.turn_id RETURNING 1
)
SELECT count(*) FROM marked
"""
_LARGEST_JOURNAL = 100_000


class PostgresFeeds:
    """`ports.FeedStore` and `ports.JournalUpkeep` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns = PostgresTurns(database)

    async def versions(self, turn_ids: Sequence[TurnId]) -> Mapping[TurnId, int]:
        rows = await self._database.rows(VERSIONS, list(turn_ids))
        return {TurnId(row["turn_id"]): row["version"] for row in rows}

    async def turn_from(
        self, tenant_id: TenantId, conversation_id: ConversationId, number: int
    ) -> StoredTurn | None:
        row = await self._database.row(TURN_FROM, tenant_id, conversation_id, number)
        return None if row is None else stored_turn(row)

    async def newest(
        self, conversations: Sequence[tuple[TenantId, ConversationId]]
    ) -> Mapping[tuple[TenantId, ConversationId], int]:
        tenants, ids = [key[0] for key in conversations], [key[1] for key in conversations]
        return {
            (TenantId(row["tenant_id"]), ConversationId(row["conversation_id"])): row["number"]
            for row in await self._database.rows(NEWEST, tenants, ids)
        }

    async def pruned_through(self, turn_id: TurnId) -> int:
        found = await self._database.value(
            "SELECT pruned_through FROM turns WHERE turn_id = $1", turn_id
        )
        return int(found or 0)

    async def to_fold(self, *, ended_before: datetime, limit: int) -> Sequence[TurnId]:
        rows = await self._database.rows(TO_FOLD, ended_before, limit)
        return [TurnId(row["turn_id"]) for row in rows]

    async def whole(self, turn_id: TurnId) -> Sequence[JournalRow]:
        return await self._turns.journal(turn_id, after=0, limit=_LARGEST_JOURNAL)

    @around("commit.folded")
    async def fold(self, turn_id: TurnId, sequences: Sequence[int]) -> None:
        await self._database.execute(_FOLD, turn_id, list(sequences))

    @around("commit.pruned", if_any=True)
    async def prune(self, *, ended_before: datetime, limit: int) -> int:
        return int(await self._database.value(PRUNE, ended_before, limit))
