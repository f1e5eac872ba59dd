"""Claims: which worker drives which turn, for how long, by the database's clock alone.

A claim is three columns of the turn: who, until when, and an epoch that each new claim raises. A
worker's writes name its epoch, so one that was stopped for longer than its lease finds nothing to
write to, even under its own name. Claiming does not change the turn's version: a person who looks
at the turn meanwhile is not told of a change that is none.

`SKIP LOCKED` lets workers pass one another; a turn whose lease is alive is not looked at twice,
because the condition stands inside the locked sub-select and is evaluated again on the locked row.
"""

from collections.abc import Mapping, Sequence

import structlog
from pydantic import ValidationError

from app.ports import Claim, ClaimedTurn
from app.store.pool import Database, Row
from app.store.turn_codec import TURN_COLUMNS, decode_turn
from app.turn.ids import AgentId, AgentVersion, TurnId

_log = structlog.get_logger(__name__)

_CLAIM = f"""
WITH due AS (
    SELECT turn_id FROM turns
    WHERE runnable_at <= clock_timestamp()
      AND (claimed_until IS NULL OR claimed_until <= clock_timestamp())
      AND (stop_requested
           OR (agent_id, agent_version) IN (SELECT * FROM unnest($4::text[], $5::text[])))
    ORDER BY runnable_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)
UPDATE turns t
SET claimed_by = $1, claimed_until = clock_timestamp() + make_interval(secs => $2),
    claim_epoch = t.claim_epoch + 1
FROM due WHERE t.turn_id = due.turn_id
RETURNING {TURN_COLUMNS}, t.claim_epoch
"""

_RENEW = """
UPDATE turns t
SET claimed_until = clock_timestamp() + make_interval(secs => $2)
FROM unnest($3::text[], $4::int[]) AS held (turn_id, epoch)
WHERE t.turn_id = held.turn_id AND t.claim_epoch = held.epoch AND t.claimed_by = $1
RETURNING t.turn_id
"""

_RELEASE = """
UPDATE turns t
SET claimed_by = NULL, claimed_until = NULL
FROM unnest($2::text[], $3::int[]) AS held (turn_id, epoch)
WHERE t.turn_id = held.turn_id AND t.claim_epoch = held.epoch AND t.claimed_by = $1
"""


class PostgresClaims:
    """`ports.ClaimQueue` on PostgreSQL."""

    def __init__(self, database: Database, *, lease_seconds: float) -> None:
        self._database = database
        self._lease_seconds = lease_seconds

    async def claim(
        self, worker: str, *, limit: int, versions: Sequence[tuple[AgentId, AgentVersion]]
    ) -> Sequence[ClaimedTurn]:
        agents = [agent_id for agent_id, _ in versions]
        known = [version for _, version in versions]
        rows = await self._database.rows(_CLAIM, worker, self._lease_seconds, limit, agents, known)
        claimed = (_claimed(worker, row) for row in rows)
        return [turn for turn in claimed if turn is not None]

    async def renew(self, worker: str, claims: Mapping[TurnId, int]) -> frozenset[TurnId]:
        rows = await self._database.rows(
            _RENEW, worker, self._lease_seconds, list(claims), list(claims.values())
        )
        return frozenset(TurnId(row["turn_id"]) for row in rows)

    async def release(self, worker: str, claims: Mapping[TurnId, int]) -> None:
        await self._database.execute(_RELEASE, worker, list(claims), list(claims.values()))


def _claimed(worker: str, row: Row) -> ClaimedTurn | None:
    """`None` for a turn of a newer version: it must not keep the others from being claimed.

    Its claim is left to run out, so it is tried again later, by a newer worker perhaps (case 56).
    """
    try:
        turn = decode_turn(row)
    except ValidationError:  # whose text would quote the turn
        _log.error("turn_not_readable", turn_id=row["turn_id"], version=row["version"])
        return None
    return ClaimedTurn(turn=turn, claim=Claim(worker=worker, epoch=row["claim_epoch"]))
