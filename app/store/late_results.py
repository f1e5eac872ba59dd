"""Results that came too late: kept for people who look into it, read by no model."""

from collections.abc import Sequence

import asyncpg
import orjson

from app.ports import KeptLateResult, LateResult
from app.ports.fault_points import around
from app.store.pool import Database, Row
from app.turn.ids import ActorId, CallId, TurnId
from app.turn.state import Turn

MOST_PER_TURN = 1_000
_MOST_RACES = 10

_KEEP = f"""
INSERT INTO late_results (turn_id, seq, tenant_id, call_id, kind, body, actor_id, received_at)
SELECT t.turn_id, n.next, t.tenant_id, $2, $4, $5, $6, clock_timestamp()
FROM turns t,
     LATERAL (SELECT coalesce(max(l.seq), 0) + 1 AS next FROM late_results l
              WHERE l.turn_id = t.turn_id) n
WHERE t.turn_id = $1 AND n.next <= {MOST_PER_TURN}
  AND ($3 OR EXISTS (
      SELECT FROM messages m
      WHERE (m.tenant_id, m.conversation_id, m.turn_id)
            = (t.tenant_id, t.conversation_id, t.turn_id)
        AND m.role = 'tool' AND m.call_id = $2))
RETURNING seq
"""

_PAGE = """
SELECT seq, call_id, kind, body, actor_id, received_at
FROM late_results WHERE turn_id = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""


class PostgresLateResults:
    """`ports.LateResultStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @around("commit.late_result")
    async def keep(self, turn: Turn, late: LateResult, *, is_open: bool) -> bool:
        if "\0" in late.call_id:
            return False  # which no id has that was ever stored
        said = {"code": late.code, "body": late.body, "isCut": late.is_cut}
        for _ in range(_MOST_RACES):
            try:
                kept = await self._database.value(
                    _KEEP,
                    turn.identity.turn_id,
                    late.call_id,
                    is_open,
                    late.kind,
                    orjson.dumps(said).decode(),
                    late.actor_id,
                )
            except asyncpg.UniqueViolationError:
                continue  # another one came at the same moment and has the number
            return kept is not None
        return False

    async def page(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[KeptLateResult]:
        rows = await self._database.rows(_PAGE, turn_id, after, limit)
        return [_kept(row) for row in rows]


def _kept(row: Row) -> KeptLateResult:
    said = orjson.loads(row["body"])
    return KeptLateResult(
        seq=row["seq"],
        late=LateResult(
            call_id=CallId(row["call_id"]),
            kind=row["kind"],
            code=said["code"],
            body=said["body"],
            is_cut=said["isCut"],
            actor_id=ActorId(row["actor_id"]),
        ),
        received_at=row["received_at"],
    )
