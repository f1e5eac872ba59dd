"""Turns that wait: who looks for them, those whose time is over, and what people have decided."""

from collections.abc import Sequence
from datetime import datetime

import orjson

from app.ports import DecidedApproval, Scope, WaitingTurn
from app.store.pool import Database, Row
from app.store.turn_codec import TURN_COLUMNS, decode_turn, readable
from app.store.turns import stored_turn
from app.turn.ids import ActorId, CallId, TurnId
from app.turn.state import Turn

WAITING = f"""
SELECT {TURN_COLUMNS}, t.waiting_since, c.title, c.owner_id
FROM turns t JOIN conversations c USING (tenant_id, conversation_id)
WHERE t.tenant_id = $1 AND t.waiting_since IS NOT NULL
  AND ($2::text IS NULL OR c.owner_id = $2
       OR ($3 AND t.waits_for && ARRAY['TOOL_APPROVAL', 'EXTERNAL_TOOL']))
  AND ($4::timestamptz IS NULL OR (t.waiting_since, t.turn_id) > ($4, $5))
ORDER BY t.waiting_since, t.turn_id LIMIT $6
"""
"""Of a tenant ($1), of an owner in it or of all ($2), with what anybody may answer of others ($3),
behind a place ($4, $5)."""

EXPIRED = f"""
SELECT {TURN_COLUMNS} FROM turns t
WHERE t.wait_expires_at <= $1 AND t.turn_id <> ALL($3::text[])
ORDER BY t.wait_expires_at LIMIT $2
"""
"""Turns with a wait that is over at a moment ($1), but for some ($3)."""

_APPROVALS = """
SELECT seq, call_id, tool_name, stage, fingerprint, is_approved, actor_id, body, requested_at,
       decided_at
FROM approvals WHERE turn_id = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""


class PostgresWaits:
    """`ports.WaitStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def waiting(
        self,
        scope: Scope,
        *,
        with_calls_of_others: bool,
        after: tuple[datetime, TurnId] | None,
        limit: int,
    ) -> Sequence[WaitingTurn]:
        whose = (scope.tenant_id, scope.owner_id, with_calls_of_others)
        found: list[WaitingTurn] = []
        while len(found) < limit:
            since, turn_id = after or (None, None)
            missing = limit - len(found)
            rows = await self._database.rows(WAITING, *whose, since, turn_id, missing)
            found += readable(rows, _waiting)
            if len(rows) < missing:
                break
            after = (rows[-1]["waiting_since"], TurnId(rows[-1]["turn_id"]))
        return found

    async def expired(self, *, at: datetime, limit: int) -> Sequence[Turn]:
        unreadable: list[str] = []
        while True:
            rows = await self._database.rows(EXPIRED, at, limit, unreadable)
            found = list(readable(rows, decode_turn))
            if len(found) == len(rows):
                return found
            known = {turn.identity.turn_id for turn in found}
            unreadable += [row["turn_id"] for row in rows if row["turn_id"] not in known]

    async def approvals(
        self, turn_id: TurnId, *, after: int, limit: int
    ) -> Sequence[DecidedApproval]:
        rows = await self._database.rows(_APPROVALS, turn_id, after, limit)
        return [_approval(row) for row in rows]


def _waiting(row: Row) -> WaitingTurn:
    return WaitingTurn(
        stored=stored_turn(row),
        waiting_since=row["waiting_since"],
        title=row["title"],
        owner_id=ActorId(row["owner_id"]),
    )


def _approval(row: Row) -> DecidedApproval:
    said = orjson.loads(row["body"])
    return DecidedApproval(
        seq=row["seq"],
        call_id=CallId(row["call_id"]),
        tool_name=row["tool_name"],
        stage=row["stage"],
        fingerprint=row["fingerprint"],
        content=said["content"],
        message=said["message"],
        is_approved=row["is_approved"],
        actor_id=ActorId(row["actor_id"]),
        reason=said["reason"],
        requested_at=row["requested_at"],
        decided_at=row["decided_at"],
    )
