"""Agent versions that have been declared: the first declaration of a version stands for ever."""

from collections.abc import Mapping

from app.store.pool import Database
from app.turn.ids import AgentId, AgentVersion

_DECLARE = """
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS w (agent_id, version, hash)
),
added AS (
    INSERT INTO agents (agent_id, version, declaration_hash, declared_at)
    SELECT agent_id, version, hash, clock_timestamp() FROM wanted
    ON CONFLICT (agent_id, version) DO NOTHING
)
SELECT a.agent_id, a.version, a.declaration_hash
FROM agents a JOIN wanted w USING (agent_id, version)
"""


async def declare(
    database: Database, hashes: Mapping[tuple[AgentId, AgentVersion], str]
) -> Mapping[tuple[AgentId, AgentVersion], str]:
    """Remember versions not seen before; the hashes of those that were, as first declared."""
    ids = [agent_id for agent_id, _ in hashes]
    versions = [version for _, version in hashes]
    rows = await database.rows(_DECLARE, ids, versions, list(hashes.values()))
    return {(row["agent_id"], row["version"]): row["declaration_hash"] for row in rows}
