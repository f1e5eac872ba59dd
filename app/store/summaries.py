"""Summaries: what stands in requests for the older part of a conversation (ADR 0034).

A summary is a record of its own, "from place a to place b, this text"; the messages stay. The one
that reaches furthest wins. It counts as long as the same of its places are hidden as when it was
made: a revert behind it would otherwise still be told of in every request, and where the revert is
undone the older summary is right again.
"""

from collections.abc import Mapping, Sequence

from app.ports import Commit, HistoryMessage
from app.store.hidden import HIDDEN_IN
from app.store.message_codec import encode
from app.turn.events import ContextCompacted, Event
from app.turn.summary import SUMMARY, in_requests

_HIDDEN_PLACES = f"{HIDDEN_IN.format('c')} * int4multirange(int4range({{0}}, {{1}}, '[]'))"

VALID_SUMMARY = f"""
    SELECT u.last_position AS last, u.body
    FROM context_summaries u JOIN conversations c USING (tenant_id, conversation_id)
    WHERE u.tenant_id = $1 AND u.conversation_id = $2
      AND u.hidden = {_HIDDEN_PLACES.format("u.first_position", "u.last_position")}
    ORDER BY u.last_position DESC, u.created_at DESC LIMIT 1
"""
"""The summary that counts in a conversation ($1, $2), if one does."""

# Never over a newer one (case 147): whoever has summed up more has seen more.
KEEP_SUMMARY = f"""
summed_up AS (
    INSERT INTO context_summaries (turn_id, model_attempt, tenant_id, conversation_id,
                                   first_position, last_position, hidden, body, created_at)
    SELECT moved.turn_id, CAST(:summed_up_by AS int), tenant_id, conversation_id,
           CAST(:summed_up_from AS int), CAST(:summed_up_to AS int),
           {_HIDDEN_PLACES.format("CAST(:summed_up_from AS int)", "CAST(:summed_up_to AS int)")},
           CAST(:summary AS text), clock_timestamp()
    FROM moved JOIN conversations c USING (tenant_id, conversation_id)
    WHERE NOT EXISTS (
        SELECT FROM context_summaries n
        WHERE (n.tenant_id, n.conversation_id) = (moved.tenant_id, moved.conversation_id)
          AND n.last_position > CAST(:summed_up_to AS int))
)"""
"""The part of a statement that keeps a summary, fed by the one row of `moved`."""


def summary_values(commit: Commit) -> Mapping[str, object] | None:
    """The arguments of `KEEP_SUMMARY`; `None` for a commit that brings no summary."""
    event = _summary_in(commit.events)
    if event is None:
        return None
    return {
        "summed_up_by": commit.before.counters.model_attempts,
        "summed_up_from": event.first,
        "summed_up_to": event.last,
        "summary": encode(in_requests(event.summary)).body,
    }


def summary_of(commit: Commit) -> tuple[HistoryMessage, ...]:
    """The summary that a commit brings, as requests carry it from then on."""
    event = _summary_in(commit.events)
    if event is None:
        return ()
    body = encode(in_requests(event.summary)).body
    return (
        HistoryMessage(position=event.last, role=SUMMARY, body=body, call_id=None, turn_id=None),
    )


def _summary_in(events: Sequence[Event]) -> ContextCompacted | None:
    if ContextCompacted not in map(type, events):
        return None
    return next(event for event in events if isinstance(event, ContextCompacted))
