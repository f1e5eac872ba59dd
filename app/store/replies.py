"""Replies to requests with an Idempotency-Key.

A reply is written by the statement that has the request's effect, so there is no moment at which
the one exists without the other. The primary key lets one of two requests that race take effect;
the other finds the reply. Keys are an actor's own: another's key is never found, and never in the
way.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

import asyncpg

from app.ports import FoundReply, KeptReply, KeyTaken
from app.ports.fault_points import around
from app.store.pool import Database
from app.store.statements import Statement
from app.turn.ids import ActorId, TenantId

KEPT_DAYS = 30
KEY_CONSTRAINT = "idempotency_keys_pkey"
_FORGOTTEN_AT_ONCE = 1_000

# A key that is past its time is as good as unused, whether it has been cleared away or not.
_FIND = f"""
WITH past AS (
    DELETE FROM idempotency_keys
    WHERE tenant_id = $1 AND actor_id = $2 AND key = $3
      AND kept_at <= clock_timestamp() - interval '{KEPT_DAYS} days'
    RETURNING key
)
SELECT digest, reply,
       greatest(extract(epoch FROM answering_until - clock_timestamp()), 0)::float8 AS busy_seconds
FROM idempotency_keys
WHERE tenant_id = $1 AND actor_id = $2 AND key = $3 AND NOT EXISTS (SELECT FROM past)
"""

_SETTLE = """
UPDATE idempotency_keys SET reply = $5, answering_until = clock_timestamp()
WHERE tenant_id = $1 AND actor_id = $2 AND key = $3 AND digest = $4
"""

_FORGET = f"""
DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM idempotency_keys
    WHERE kept_at <= clock_timestamp() - interval '{KEPT_DAYS} days'
    LIMIT {_FORGOTTEN_AT_ONCE}
))
RETURNING key
"""


class PostgresReplies:
    """`ports.ReplyStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, principal: tuple[TenantId, ActorId], key: str) -> FoundReply | None:
        row = await self._database.row(_FIND, *principal, key)
        return None if row is None else FoundReply(**row)

    @around("commit.reply")
    async def settle(self, principal: tuple[TenantId, ActorId], kept: KeptReply) -> None:
        await self._database.execute(_SETTLE, *principal, kept.key, kept.digest, kept.reply)

    @around("commit.forgotten")
    async def forget(self) -> int:
        """Clear away some of what is past its time; how many, 0 when nothing is left."""
        return len(await self._database.rows(_FORGET))


async def keep_alone(database: Database, whose: tuple[TenantId, ActorId], kept: KeptReply) -> None:
    """Keep a reply by a statement of its own, in the transaction of its effect.

    Raises:
        KeyTaken: another request with the same key took effect first.
    """
    tenant_id, actor_id = whose
    values = {"tenant_id": tenant_id, "actor_id": actor_id, **kept_values(kept)}
    with taken_keys():
        await database.execute(_KEEP.sql, *_KEEP.arguments(values))


def keep_reply(source: str) -> str:
    """The part of a statement that keeps its reply, fed by the one row of `source`."""
    return f"""
    INSERT INTO idempotency_keys (tenant_id, actor_id, key, digest, reply, conversation_id,
                                  kept_at, answering_until)
    SELECT tenant_id, :actor_id, :kept_key, :kept_digest, :kept_reply, conversation_id,
           clock_timestamp(),
           clock_timestamp() + make_interval(secs => CAST(:kept_answering AS double precision))
    FROM {source} WHERE CAST(:kept_key AS text) IS NOT NULL
"""


def kept_values(kept: KeptReply | None) -> Mapping[str, object]:
    """The arguments of a statement that keeps a reply, by name."""
    return {
        "kept_key": kept and kept.key,
        "kept_digest": kept and kept.digest,
        "kept_reply": kept and kept.reply,
        "kept_answering": kept and kept.answering_seconds,
    }


@contextmanager
def taken_keys() -> Generator[None, None, None]:
    """Raises `KeyTaken` when the statement inside met a key that another request took first."""
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        if getattr(error, "constraint_name", None) == KEY_CONSTRAINT:
            raise KeyTaken from error
        raise


_KEEP = Statement(
    f"""
WITH asked AS (SELECT CAST(:tenant_id AS text) AS tenant_id, CAST(NULL AS text) AS conversation_id)
{keep_reply("asked")}
"""
)
