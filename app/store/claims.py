"""Claims: which worker drives which turn, for how long, by the database's clock alone.

A claim is three columns of the turn: who, until when, and an epoch that each new claim raises. A
worker's writes name its epoch, so one that was stopped for longer than its lease finds nothing to
write to, even under its own name. Claiming does not change the turn's version: a person who looks
at the turn meanwhile is not told of a change that is none.

`SKIP LOCKED` lets workers pass one another; a turn whose lease is alive is not looked at twice,
because the condition stands inside the locked sub-select and is evaluated again on the locked row.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from app.ports import Claim, ClaimedTurn
from app.ports.fault_points import around
from app.store.pool import Database, Row
from app.store.turn_codec import TURN_COLUMNS, decode_turn, readable
from app.turn.ids import AgentId, AgentVersion, TurnId

_MOST_TENANTS = 32
"""Looked at by one statement, so that it costs the same however many there are."""
_MOST_LOOKS = 64

_NEXT_TENANT = """
coalesce((SELECT n.tenant_id FROM turns n
          WHERE n.runnable_at IS NOT NULL AND n.tenant_id > {0}
          ORDER BY n.tenant_id LIMIT 1),
         (SELECT n.tenant_id FROM turns n
          WHERE n.runnable_at IS NOT NULL ORDER BY n.tenant_id LIMIT 1))
"""
"""The tenant with turns at work behind another one; behind the last comes the first."""

_LEASE = "make_interval(secs => CAST($2 AS double precision))"
_WAITS = f"{_LEASE} / 3 * CASE WHEN t.stop_requested THEN 0 ELSE t.deaths END"
"""How long a turn is left alone once a claim of it has run out: longer with each worker that has
died of it, but not at all when it only has to be stopped."""

_OURS = """(
    t.stop_requested
    OR (t.agent_id, t.agent_version) IN (SELECT * FROM unnest($4::text[], $5::text[]))
)"""
"""What a worker with these agents can drive."""

_FREE = f"(t.claimed_until IS NULL OR t.claimed_until <= clock_timestamp() - {_WAITS})"
_TAKE_DUE = f"""
UPDATE turns t
SET claimed_by = $1, claimed_until = clock_timestamp() + {_LEASE}, claim_epoch = t.claim_epoch + 1,
    deaths = t.deaths + CASE WHEN due.was_held THEN 1 ELSE 0 END
FROM due WHERE t.turn_id = due.turn_id
RETURNING {TURN_COLUMNS}, t.claim_epoch, t.deaths, due.was_held
"""

CLAIM = f"""
/* what is due, FOR UPDATE SKIP LOCKED, tenant by tenant: the server shows only the beginning */
WITH RECURSIVE visited (tenant_id, first_id, place) AS (
    SELECT f.tenant_id, f.tenant_id, 1 FROM (SELECT {_NEXT_TENANT.format("$6")} AS tenant_id) f
    UNION ALL
    SELECT f.tenant_id, v.first_id, v.place + 1
    FROM visited v, LATERAL (SELECT {_NEXT_TENANT.format("v.tenant_id")} AS tenant_id) f
    WHERE v.place < {_MOST_TENANTS} AND f.tenant_id <> v.first_id
),
due AS (
    SELECT v.place, d.turn_id, d.was_held
    FROM visited v, LATERAL (
        SELECT t.turn_id, t.claimed_by IS NOT NULL AS was_held FROM turns t
        WHERE t.tenant_id = v.tenant_id AND t.runnable_at <= statement_timestamp()
          AND {_FREE} AND {_OURS}
        ORDER BY t.runnable_at
        LIMIT (SELECT ceil(CAST($3 AS numeric) / count(*)) FROM visited)
        FOR UPDATE SKIP LOCKED
    ) d
    LIMIT $3
),
taken AS ({_TAKE_DUE}, due.place)
SELECT l.tenant_id AS last_tenant, l.place = {_MOST_TENANTS} AS is_cut, taken.*
FROM (SELECT tenant_id, place FROM visited ORDER BY place DESC LIMIT 1) l
LEFT JOIN taken ON true
"""
"""By a worker ($1) for a lease ($2), so many turns ($3) of these agents ($4, $5), of the tenants
behind one ($6).

`statement_timestamp()` stands still within the statement, so the index is read only as far as turns
are due; how many wait for a later time, or for nothing, makes no difference.
"""

CLAIM_NAMED = f"""
WITH due AS (
    SELECT t.turn_id, t.claimed_by IS NOT NULL AS was_held FROM turns t
    WHERE t.turn_id = ANY($6::text[]) AND t.runnable_at <= statement_timestamp()
      AND {_FREE} AND {_OURS}
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)
{_TAKE_DUE}
"""
"""As `CLAIM`, of the turns named ($6)."""

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

_RELEASE_STRAYS = """
UPDATE turns SET claimed_by = NULL, claimed_until = NULL
WHERE turn_id = ANY($2::text[]) AND claimed_by = $1
RETURNING turn_id
"""

_PUT_OFF = """
UPDATE turns t
SET claimed_by = CASE WHEN held.was_held THEN t.claimed_by END,
    deaths = t.deaths - CASE WHEN held.was_held THEN 1 ELSE 0 END
FROM unnest($2::text[], $3::int[], $4::bool[]) AS held (turn_id, epoch, was_held)
WHERE t.turn_id = held.turn_id AND t.claim_epoch = held.epoch AND t.claimed_by = $1
"""
"""A turn that a worker cannot read waits until the claim would have run out. What the next claim is
told of it is as if this one had not been: no worker has died of it."""

_TAKE = """
UPDATE turns t
SET claimed_by = $1, claimed_until = clock_timestamp() + make_interval(secs => $2),
    claim_epoch = t.claim_epoch + 1
WHERE t.turn_id = $3 AND t.status = 'RUNNING' AND t.claimed_by IS NOT NULL
  AND t.claimed_until <= clock_timestamp()
RETURNING t.claim_epoch
"""

_LAPSE = f"""
UPDATE turns t SET claimed_until = clock_timestamp() - {_WAITS}
WHERE t.turn_id = $1 AND t.claim_epoch = $3 AND t.claimed_by = $4
"""
"""Due at once: requests that are refused again and again must not keep the workers from it."""


class PostgresClaims:
    """`ports.ClaimQueue` and `ports.OrphanClaims` on PostgreSQL.

    It remembers whose turn was the last that it has claimed. The next claim begins with the tenant
    behind that one, so that tenants take turns, however many turns one of them has.
    """

    def __init__(self, database: Database, *, lease_seconds: float) -> None:
        self._database = database
        self._lease_seconds = lease_seconds
        self._last_tenant = ""

    @around("claim.take", if_any=True)
    async def claim(
        self,
        worker: str,
        *,
        limit: int,
        versions: Sequence[tuple[AgentId, AgentVersion]],
        named: AbstractSet[TurnId] | None = None,
    ) -> Sequence[ClaimedTurn]:
        agents = [agent_id for agent_id, _ in versions]
        known = [version for _, version in versions]
        terms = (worker, self._lease_seconds, limit, agents, known)
        if named is None:
            taken = await self._taken(*terms)
        else:
            taken = await self._database.rows(CLAIM_NAMED, *terms, list(named))
        claimed = list(readable(taken, partial(_claimed, worker)))
        read = {each.turn.identity.turn_id for each in claimed}
        unreadable = [row for row in taken if row["turn_id"] not in read]
        if unreadable:  # by this version: a newer worker may be next (case 56)
            await self._put_off(worker, unreadable)
        return claimed

    async def _taken(
        self,
        worker: str,
        lease: float,
        limit: int,
        agents: list[AgentId],
        known: list[AgentVersion],
    ) -> Sequence[Row]:
        taken: Sequence[Row] = ()
        for _ in range(_MOST_LOOKS):
            rows = await self._database.rows(
                CLAIM, worker, lease, limit, agents, known, self._last_tenant
            )
            taken = [row for row in rows if row["turn_id"] is not None]
            self._last_tenant = _last_of(rows, taken, limit)
            if taken or not rows[0]["is_cut"]:
                break
        return taken

    @around("claim.release")
    async def _put_off(self, worker: str, rows: Sequence[Row]) -> None:
        await self._database.execute(
            _PUT_OFF,
            worker,
            [row["turn_id"] for row in rows],
            [row["claim_epoch"] for row in rows],
            [row["was_held"] for row in rows],
        )

    @around("claim.renew")
    async def renew(self, worker: str, claims: Mapping[TurnId, int]) -> frozenset[TurnId]:
        rows = await self._database.rows(
            _RENEW, worker, self._lease_seconds, list(claims), list(claims.values())
        )
        return frozenset(TurnId(row["turn_id"]) for row in rows)

    @around("claim.release")
    async def release(self, worker: str, claims: Mapping[TurnId, int]) -> None:
        await self._database.execute(_RELEASE, worker, list(claims), list(claims.values()))

    @around("claim.release")
    async def release_strays(
        self, worker: str, turn_ids: AbstractSet[TurnId]
    ) -> AbstractSet[TurnId]:
        rows = await self._database.rows(_RELEASE_STRAYS, worker, list(turn_ids))
        return {TurnId(row["turn_id"]) for row in rows}

    @around("claim.take", if_any=True)
    async def take(self, worker: str, turn_id: TurnId) -> Claim | None:
        epoch = await self._database.value(_TAKE, worker, self._lease_seconds, turn_id)
        return None if epoch is None else Claim(worker=worker, epoch=epoch)

    @around("claim.release")
    async def lapse(self, turn_id: TurnId, claim: Claim) -> None:
        await self._database.execute(
            _LAPSE, turn_id, self._lease_seconds, claim.epoch, claim.worker
        )


def _last_of(rows: Sequence[Row], taken: Sequence[Row], limit: int) -> str:
    """The last tenant that has had its turn: of all that were looked at, if there were too few."""
    if len(taken) == limit:
        return str(max(taken, key=lambda row: row["place"])["tenant_id"])
    return str(rows[0]["last_tenant"] or "")


def _claimed(worker: str, row: Row) -> ClaimedTurn:
    return ClaimedTurn(
        turn=decode_turn(row),
        claim=Claim(worker=worker, epoch=row["claim_epoch"]),
        is_taken_over=row["was_held"],
        deaths=row["deaths"],
    )
