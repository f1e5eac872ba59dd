"""Rows of the `messages` table, as messages and as the history that a model request carries."""

from collections.abc import Sequence

from app.ports import HistoryMessage
from app.store.hidden import HIDDEN_IN
from app.store.message_codec import EncodedMessage, decode, encode
from app.store.pool import Row
from app.store.summaries import VALID_SUMMARY
from app.turn.ids import CallId, TurnId
from app.turn.requestable import requestable
from app.turn.summary import SUMMARY
from app.turn.transcript import Message

MESSAGE_COLUMNS = "m.position, m.role, m.body, m.meta, m.message_id, m.call_id"
"""What `decode_message` reads, of a table `messages m`."""

# What a request does not carry is left where it is, but for messages that were brought along. So is
# what a summary stands for, but for the ids of its calls.
# The conversation is looked up once: joined, it could be looked up for every message, by a plan of
# the time when there were none.
HISTORY = f"""
WITH summary AS ({VALID_SUMMARY})
SELECT m.position, m.role, CASE WHEN s.last IS NULL THEN m.body ELSE '' END AS body,
       m.message_id, m.call_id, m.turn_id, m.turn_id IS NULL AS is_brought,
       s.last IS NOT NULL AS is_summed_up,
       CASE WHEN s.last IS NULL AND (m.turn_id IS NULL OR m.role = 'tool') THEN m.meta END AS meta
FROM messages m LEFT JOIN summary s ON m.position <= s.last
WHERE m.tenant_id = $1 AND m.conversation_id = $2 AND NOT m.position <@ (
    SELECT {HIDDEN_IN.format("c")} FROM conversations c
    WHERE c.tenant_id = $1 AND c.conversation_id = $2
)
UNION ALL
SELECT s.last, '{SUMMARY}', s.body, NULL, NULL, NULL, false, false, NULL FROM summary s
ORDER BY 1, 8 DESC
"""


def decode_message(row: Row) -> Message:
    return decode(_encoded(row))


def as_requested(rows: Sequence[Row]) -> list[HistoryMessage]:
    """The rows of `HISTORY` as a request carries them: what was brought along has to be judged.

    It is the beginning of a history, up to and with the answers to calls at its end. Results that
    change places there share the places there are.
    """
    begin = sum(row["is_summed_up"] or row["role"] == SUMMARY for row in rows)
    end = begin
    while end < len(rows) and (
        rows[end]["is_brought"] or (end > begin and rows[end]["role"] == "tool")
    ):
        end += 1
    taken = requestable([decode_message(row) for row in rows[begin:end]])
    judged = [
        history_message(row["position"], encode(message), row["turn_id"])
        for row, message in zip(rows[begin:end], taken, strict=False)
    ]
    return [*map(_as_stored, rows[:begin]), *judged, *map(_as_stored, rows[end:])]


def _as_stored(row: Row) -> HistoryMessage:
    return HistoryMessage(
        position=row["position"],
        role=row["role"],
        body=row["body"],
        call_id=row["call_id"],
        turn_id=row["turn_id"],
        is_summed_up=row["is_summed_up"],
    )


def history_message(
    position: int, message: EncodedMessage, turn_id: TurnId | None
) -> HistoryMessage:
    """A message in its place, as a request carries it."""
    call_id = None if message.call_id is None else CallId(message.call_id)
    return HistoryMessage(
        position=position, role=message.role, body=message.body, call_id=call_id, turn_id=turn_id
    )


def _encoded(row: Row) -> EncodedMessage:
    return EncodedMessage(
        role=row["role"],
        body=row["body"],
        meta=row["meta"],
        message_id=row["message_id"],
        call_id=row["call_id"],
    )
