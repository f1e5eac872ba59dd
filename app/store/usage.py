"""What model calls have cost: one row for each attempt that has ended, read as sums.

An attempt is counted once, by the commit that takes it out of flight, however it ends: with an
answer, with a failure, dropped for a pause or a cancellation, or found lost. So a turn's rows are
its attempts, and sums over a time never change afterwards. Figures that no provider gave stay
null; the sums say how many those are, since a sum that leaves them out silently is too low.
"""

from collections.abc import Mapping
from datetime import datetime

from app.ports import Commit, Figure, Scope, Spending
from app.store.pool import Database, Row
from app.turn.events import (
    CompactionFailed,
    ContextCompacted,
    ModelCompleted,
    ModelFailed,
    ModelStopped,
)
from app.turn.ids import AgentId
from app.turn.states import CallingModel, Compacting
from app.turn.transcript import Usage

SUMS = """
SELECT agent_id, count(*) AS attempts, count(*) FILTER (WHERE succeeded) AS successes,
       sum(input_tokens) AS input_tokens, count(*) - count(input_tokens) AS no_input,
       sum(cached_input_tokens) AS cached, count(*) - count(cached_input_tokens) AS no_cached,
       sum(output_tokens) AS output_tokens, count(*) - count(output_tokens) AS no_output
FROM model_usage u
WHERE tenant_id = $1 AND ended_at >= $3 AND ended_at < $4
  AND ($2::text IS NULL OR EXISTS (
      SELECT FROM conversations c
      WHERE (c.tenant_id, c.conversation_id) = (u.tenant_id, u.conversation_id)
        AND c.owner_id = $2))
GROUP BY agent_id ORDER BY agent_id
"""
"""Of a tenant ($1), of an owner in it or of all ($2), over a time ($3, $4)."""


class PostgresUsage:
    """`ports.UsageStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_agent(
        self, scope: Scope, *, since: datetime, until: datetime
    ) -> Mapping[AgentId, Spending]:
        rows = await self._database.rows(SUMS, scope.tenant_id, scope.owner_id, since, until)
        return {AgentId(row["agent_id"]): _spending(row) for row in rows}


def count_attempt(source: str) -> str:
    """The part of a statement that counts an ended attempt, fed by the one row of `source`."""
    return f"""
    INSERT INTO model_usage (turn_id, model_attempt, tenant_id, conversation_id, agent_id,
                             succeeded, input_tokens, cached_input_tokens, output_tokens, ended_at)
    SELECT turn_id, CAST(:spent_attempt AS int), tenant_id, conversation_id,
           CAST(:spent_by AS text), CAST(:spent_well AS boolean), CAST(:spent_input AS bigint),
           CAST(:spent_cached AS bigint), CAST(:spent_output AS bigint), clock_timestamp()
    FROM {source}
"""


_ENDS = ModelCompleted | ContextCompacted | CompactionFailed | ModelFailed | ModelStopped
"""What tells of an attempt's cost. A stop behind a completion tells nothing new."""


def attempt_values(commit: Commit) -> Mapping[str, object] | None:
    """The arguments of `count_attempt`, by name; `None` when no attempt has ended."""
    attempt = _ended_attempt(commit)
    if attempt is None:
        return None
    ends = [event for event in commit.events if isinstance(event, _ENDS)]
    usage = ends[0].usage if ends else Usage()
    return {
        "spent_attempt": attempt,
        "spent_by": commit.after.identity.agent_id,
        "spent_well": any(isinstance(event, ModelCompleted | ContextCompacted) for event in ends),
        "spent_input": usage.input_tokens,
        "spent_cached": usage.cached_input_tokens,
        "spent_output": usage.output_tokens,
    }


def _ended_attempt(commit: Commit) -> int | None:
    """The number of the attempt that was in flight and is not any more.

    One whose worker has died has been counted by the pause for that.
    """
    before = commit.before
    if not isinstance(before.state, CallingModel | Compacting) or before.state.has_crashed:
        return None
    still = commit.after.attempt_in_flight == before.state.attempt_id
    return None if still else before.counters.model_attempts


def _spending(row: Row) -> Spending:
    return Spending(
        attempts=row["attempts"],
        successes=row["successes"],
        input_tokens=_figure(row["input_tokens"], row["no_input"]),
        cached_input_tokens=_figure(row["cached"], row["no_cached"]),
        output_tokens=_figure(row["output_tokens"], row["no_output"]),
    )


def _figure(known: int | None, attempts_without: int) -> Figure:
    """A sum comes as a numeric, or as null over nothing but nulls."""
    return Figure(known=None if known is None else int(known), attempts_without=attempts_without)
