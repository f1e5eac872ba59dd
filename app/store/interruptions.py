"""Records of calls that were interrupted: written with the events they are made of, read in order.

A call has one result, so it has one record at most, and its place in the transcript is its place
in the list: rounds in the order they were asked for, calls as their round declared them.
"""

from collections.abc import Mapping, Sequence
from typing import get_args

from app.ports import Commit, InterruptedCall
from app.store.pool import Database, Row
from app.turn.ids import CallId, MessageId, TurnId
from app.turn.journal import Interruption
from app.turn.transcript import InterruptionReason, Outcome

_READ = """
SELECT position, call_id, tool_name, outcome, reason, suspension_type, source_message_id,
       interrupted_at
FROM tool_interruptions WHERE turn_id = $1 AND position > $2 ORDER BY position LIMIT $3
"""


_INTERRUPTIONS = frozenset(get_args(Interruption))


def keep_interruptions(source: str) -> str:
    """The part of a statement that records interrupted calls, fed by the one row of `source`."""
    return f"""
    INSERT INTO tool_interruptions (turn_id, position, call_id, tool_name, outcome, reason,
                                    suspension_type, source_message_id, interrupted_at)
    SELECT turn_id, i.position, i.call_id, i.tool_name, i.outcome, i.reason,
           CAST(:closed_while AS text), i.source, clock_timestamp()
    FROM {source}, unnest(CAST(:closed_position AS int[]), CAST(:closed_call AS text[]),
                          CAST(:closed_tool AS text[]), CAST(:closed_outcome AS text[]),
                          CAST(:closed_reason AS text[]), CAST(:closed_source AS text[]))
         AS i (position, call_id, tool_name, outcome, reason, source)
"""


def interruption_values(commit: Commit) -> Mapping[str, object] | None:
    """The arguments of `keep_interruptions`, by name; `None` when no call was interrupted."""
    if _INTERRUPTIONS.isdisjoint(map(type, commit.events)):
        return None
    closed = [event for event in commit.events if isinstance(event, Interruption)]
    return {
        "closed_while": commit.before.suspension_type,
        "closed_position": [event.position for event in closed],
        "closed_call": [event.result.call_id for event in closed],
        "closed_tool": [event.result.tool_name for event in closed],
        "closed_outcome": [event.result.outcome for event in closed],
        "closed_reason": [event.reason for event in closed],
        "closed_source": [event.source_message_id for event in closed],
    }


async def interruptions_of(
    database: Database, turn_id: TurnId, *, after: int, limit: int
) -> Sequence[InterruptedCall]:
    """The turn's records behind the position `after`."""
    return [_record(row) for row in await database.rows(_READ, turn_id, after, limit)]


def _record(row: Row) -> InterruptedCall:
    reason, source = row["reason"], row["source_message_id"]
    return InterruptedCall(
        position=row["position"],
        call_id=CallId(row["call_id"]),
        tool_name=row["tool_name"],
        outcome=Outcome(row["outcome"]),
        reason=None if reason is None else InterruptionReason(reason),
        suspension_type=row["suspension_type"],
        source_message_id=None if source is None else MessageId(source),
        interrupted_at=row["interrupted_at"],
    )
