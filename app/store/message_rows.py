"""Rows of the `messages` table, as messages and as the history that a model request carries."""

from collections.abc import Sequence

from app.ports import HistoryMessage
from app.store.hidden import HIDDEN
from app.store.message_codec import EncodedMessage, decode, encode
from app.store.pool import Row
from app.turn.ids import CallId
from app.turn.requestable import requestable
from app.turn.transcript import Message

MESSAGE_COLUMNS = "m.position, m.role, m.body, m.meta, m.message_id, m.call_id"
"""What `decode_message` reads, of a table `messages m`."""

# What a request does not carry is left where it is, but for messages that were brought along.
HISTORY = f"""
SELECT m.position, m.role, m.body, m.message_id, m.call_id, m.turn_id IS NULL AS is_brought,
       CASE WHEN m.turn_id IS NULL OR m.role = 'tool' THEN m.meta END AS meta
FROM messages m JOIN conversations c USING (tenant_id, conversation_id)
WHERE m.tenant_id = $1 AND m.conversation_id = $2 AND NOT {HIDDEN} ORDER BY m.position
"""


def decode_message(row: Row) -> Message:
    return decode(_encoded(row))


def as_requested(rows: Sequence[Row]) -> list[HistoryMessage]:
    """The rows of `HISTORY` as a request carries them: what was brought along has to be judged.

    It is the beginning of a history, up to and with the answers to calls at its end. Results that
    change places there share the places there are.
    """
    end = 0
    while end < len(rows) and (rows[end]["is_brought"] or (end and rows[end]["role"] == "tool")):
        end += 1
    taken = requestable([decode_message(row) for row in rows[:end]])
    judged = [
        history_message(row["position"], encode(message))
        for row, message in zip(rows[:end], taken, strict=False)
    ]
    return judged + [_as_stored(row) for row in rows[end:]]


def _as_stored(row: Row) -> HistoryMessage:
    return HistoryMessage(
        position=row["position"], role=row["role"], body=row["body"], call_id=row["call_id"]
    )


def history_message(position: int, message: EncodedMessage) -> HistoryMessage:
    """A message in its place, as a request carries it."""
    call_id = None if message.call_id is None else CallId(message.call_id)
    return HistoryMessage(position=position, role=message.role, body=message.body, call_id=call_id)


def _encoded(row: Row) -> EncodedMessage:
    return EncodedMessage(
        role=row["role"],
        body=row["body"],
        meta=row["meta"],
        message_id=row["message_id"],
        call_id=row["call_id"],
    )
