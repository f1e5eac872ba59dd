"""The parts of a change: what is written beside the turn's own row, each only where it is needed.

A part is one data-modifying CTE and its arguments. A statement is put together from the parts that
a change has, so that most changes, a worker's, carry a dozen arguments instead of fifty; there are
as many statements as there are combinations that occur, a few dozen, and each is prepared once for
a connection.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from app.ports import Command, Commit, KeptReply, Opened
from app.store.interruptions import interruption_values, keep_interruptions
from app.store.message_codec import EncodedMessage, encode
from app.store.replies import keep_reply, kept_values
from app.store.statements import Statement
from app.store.summaries import KEEP_SUMMARY, summary_values
from app.store.turn_codec import encode_events, encode_failure, encode_turn
from app.store.usage import attempt_values, count_attempt
from app.store.wait_records import KEEP_WAITS, wait_values
from app.turn.events import Event, ModelFailed
from app.turn.journal import added_message
from app.turn.state import Turn
from app.turn.transcript import Message

Added: TypeAlias = Sequence[tuple[int, EncodedMessage]]
"""Messages with their places, as they are stored."""


@dataclass(frozen=True, slots=True)
class Part:
    """A named piece of a statement, fed by pieces before it; `moved` is the one row of the turn."""

    sql: str
    values: Mapping[str, object]


def composed(parts: Iterable[Part | None]) -> tuple[Statement, Mapping[str, object]]:
    """The statement of these parts, and its arguments by name; it gives the turn's claim epoch."""
    given = [part for part in parts if part is not None]
    values: dict[str, object] = {}
    for part in given:
        values |= part.values
    return _statement(tuple([part.sql for part in given])), values


@lru_cache(maxsize=256)
def _statement(parts: tuple[str, ...]) -> Statement:
    return Statement(f"WITH {', '.join(parts)} SELECT claim_epoch FROM moved")


def consequences(
    commit: Commit, added: Added, command: Command | None, *, before: Turn | None
) -> Iterable[Part | None]:
    """What must be true together with the turn's new state; `before` is what an audit row names."""
    parts = (
        Part(_JOURNAL, {"at": commit.at, "events": encode_events(commit.events)}),
        _said(added),
        _failures(commit.events),
        _part(_INTERRUPTED, interruption_values(commit)),
        _part(_SPENT, attempt_values(commit)),
        _part(KEEP_WAITS, wait_values(commit)),
        _part(KEEP_SUMMARY, summary_values(commit)),
    )
    if command is None:
        return parts
    return (*parts, _received(command), _kept(command.kept), _audited(command, before))


def _part(sql: str, values: Mapping[str, object] | None) -> Part | None:
    return None if values is None else Part(sql, values)


_JOURNAL = """
journal AS (
    INSERT INTO turn_events (turn_id, sequence, occurred_at, events)
    SELECT turn_id, version, :at, :events FROM moved
)"""
_INTERRUPTED = f"interrupted AS ({keep_interruptions('moved')})"
_SPENT = f"spent AS ({count_attempt('moved')})"
_KEPT = f"kept AS ({keep_reply('moved')})"


# --- Messages ------------------------------------------------------------------------------------


_TYPE_OF = {
    "position": "int",
    "role": "text",
    "message_id": "text",
    "call_id": "text",
    "body": "text",
    "meta": "text",
}
"""What a change says of a message, with the types of its columns."""


def _insert_messages(source: str, turn_id: str, given: str) -> str:
    return f"""
    INSERT INTO messages (tenant_id, conversation_id, position, turn_id, role, message_id,
                          call_id, body, meta, created_at)
    SELECT tenant_id, conversation_id, m.position, {turn_id}, m.role, m.message_id,
           m.call_id, m.body, m.meta, clock_timestamp()
    FROM {source}, {given} AS m ({", ".join(_TYPE_OF)})
"""


def _several(named: str) -> str:
    lists = (f"CAST(:{named}_{name} AS {kind}[])" for name, kind in _TYPE_OF.items())
    return f"unnest({', '.join(lists)})"


def _one(named: str) -> str:
    """Most changes add one message, and six lists of one cost more than what is in them."""
    fields = (f"CAST(:{named}_{name} AS {kind})" for name, kind in _TYPE_OF.items())
    return f"(VALUES ({', '.join(fields)}))"


def bring(source: str) -> str:
    """The part of a statement that adds messages of no turn to the conversation of `source`."""
    return _insert_messages(source, "NULL", _several("brought"))


_SAID = f"said AS ({_insert_messages('moved', 'turn_id', _several('said'))})"
_SAID_ONE = f"said AS ({_insert_messages('moved', 'turn_id', _one('said'))})"
_BROUGHT = f"brought AS ({bring('moved')})"


def brought(history: Sequence[Message]) -> Part | None:
    """Messages of no turn, from the first place on."""
    return Part(_BROUGHT, brought_values(history)) if history else None


def brought_values(history: Sequence[Message]) -> Mapping[str, object]:
    """The arguments of what `bring` gives."""
    placed = [(place, encode(message)) for place, message in enumerate(history)]
    return _lists(placed, "brought")


def added_by(events: Sequence[Event]) -> Added:
    """The messages that the events add."""
    pairs = [added_message(event) for event in events]
    return [(pair[0], encode(pair[1])) for pair in pairs if pair is not None]


def _said(added: Added) -> Part | None:
    if not added:
        return None
    if len(added) > 1:
        return Part(_SAID, _lists(added, "said"))
    ((position, message),) = added
    values: Mapping[str, object] = {
        "said_position": position,
        "said_role": message.role,
        "said_message_id": message.message_id,
        "said_call_id": message.call_id,
        "said_body": message.body,
        "said_meta": message.meta,
    }
    return Part(_SAID_ONE, values)


def _lists(added: Added, named: str) -> Mapping[str, object]:
    messages = [message for _, message in added]
    return {
        f"{named}_position": [position for position, _ in added],
        f"{named}_role": [m.role for m in messages],
        f"{named}_message_id": [m.message_id for m in messages],
        f"{named}_call_id": [m.call_id for m in messages],
        f"{named}_body": [m.body for m in messages],
        f"{named}_meta": [m.meta for m in messages],
    }


# --- Failures ------------------------------------------------------------------------------------

_FAILED = """
failed AS (
    INSERT INTO model_failures (failure_id, turn_id, failure_type, model_attempt, occurred_at, body)
    SELECT f.failure_id, turn_id, f.failure_type, f.model_attempt, f.occurred_at, f.body
    FROM moved, unnest(CAST(:failed_id AS text[]), CAST(:failed_type AS text[]),
                       CAST(:failed_attempt AS int[]), CAST(:failed_at AS timestamptz[]),
                       CAST(:failed_body AS text[]))
         AS f (failure_id, failure_type, model_attempt, occurred_at, body)
)"""


def _failures(events: Sequence[Event]) -> Part | None:
    if ModelFailed not in map(type, events):
        return None
    records = [event.record for event in events if isinstance(event, ModelFailed)]
    values: Mapping[str, object] = {
        "failed_id": [r.failure_id for r in records],
        "failed_type": [r.failure.type for r in records],
        "failed_attempt": [r.model_attempt for r in records],
        "failed_at": [r.occurred_at for r in records],
        "failed_body": [encode_failure(r.failure) for r in records],
    }
    return Part(_FAILED, values)


# --- Commands ------------------------------------------------------------------------------------

# What a person's command does to its conversation `c`. A new message makes a revert final.
TOUCHED = """
    updated_at = clock_timestamp(),
    hidden = CASE WHEN CAST(:message_id AS text) IS NULL THEN c.hidden
                  ELSE c.hidden + int4multirange(c.reverted) END,
    reverted = CASE WHEN CAST(:message_id AS text) IS NULL THEN c.reverted ELSE 'empty' END,
    reverted_to = CASE WHEN CAST(:message_id AS text) IS NULL THEN c.reverted_to END
"""

_TOUCHED = f"""
touched AS (
    UPDATE conversations c SET {TOUCHED} FROM moved
    WHERE (c.tenant_id, c.conversation_id) = (moved.tenant_id, moved.conversation_id)
)"""

_RECEIVED = """
taken AS (
    INSERT INTO received (tenant_id, conversation_id, message_id, turn_id, digest, received_at)
    SELECT tenant_id, conversation_id, :message_id, turn_id, :message_digest, clock_timestamp()
    FROM moved
)"""

_AUDITED = """
audited AS (
    INSERT INTO audit (tenant_id, actor_id, at, action, outcome, conversation_id, turn_id,
                       failure_id, call_id, request_id, version_before, version_after,
                       status_before, status_after, changes)
    SELECT tenant_id, :actor_id, clock_timestamp(), :action, 'accepted', conversation_id, turn_id,
           :failure_id, :call_id, :request_id, :version_before, version, :status_before, status,
           :changes
    FROM moved
)"""


def touched(command: Command | None) -> Part | None:
    """The conversation of a turn that somebody gave a command to; a worker leaves its row alone."""
    return None if command is None else Part(_TOUCHED, message_id_of(command))


def message_id_of(command: Command) -> Mapping[str, object]:
    """The argument of `TOUCHED`."""
    return {"message_id": command.receipt and command.receipt.message_id}


def _received(command: Command) -> Part | None:
    receipt = command.receipt
    if receipt is None:
        return None
    digest = {"message_digest": receipt.digest}
    return Part(_RECEIVED, {**message_id_of(command), **digest})


def _kept(kept: KeptReply | None) -> Part | None:
    return None if kept is None else Part(_KEPT, kept_values(kept))


def _audited(command: Command, before: Turn | None) -> Part:
    audit = command.audit
    values: Mapping[str, object] = {
        "actor_id": audit.actor_id,
        "action": audit.action,
        "failure_id": audit.failure_id,
        "call_id": audit.call_id,
        "request_id": audit.request_id,
        "changes": audit.changes,
        "version_before": None if before is None else before.version,
        "status_before": None if before is None else before.status,
    }
    return Part(_AUDITED, values)


# --- The turn behind it --------------------------------------------------------------------------

# A worker leaves the conversation's row alone here too: a lock on it, taken behind the turn's,
# could meet a creation that takes them the other way round.
_OPENED = """
opened AS (
    INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status,
                       version, body, created_at, updated_at, runnable_at, claim_epoch,
                       stop_requested)
    SELECT :next_turn_id, tenant_id, conversation_id, :next_agent_id, :next_agent_version,
           :next_status, :next_version, :next_body, :next_created_at, :at, clock_timestamp(), 0,
           false
    FROM moved
    RETURNING turn_id, tenant_id, conversation_id, version
),
next_journal AS (
    INSERT INTO turn_events (turn_id, sequence, occurred_at, events)
    SELECT turn_id, version, :at, :next_events FROM opened
),
handed_on AS (
    UPDATE received r SET turn_id = opened.turn_id FROM opened
    WHERE (r.tenant_id, r.conversation_id) = (opened.tenant_id, opened.conversation_id)
      AND r.message_id = ANY(CAST(:next_message_ids AS text[]))
)"""
_NEXT_SAID = f"next_said AS ({_insert_messages('opened', 'turn_id', _several('next_said'))})"


def successor(opened: Opened | None) -> Iterable[Part]:
    """The turn that an ended one's queue opens."""
    if opened is None:
        return
    turn, added = opened.turn, added_by(opened.events)
    values: Mapping[str, object] = {
        "next_turn_id": turn.identity.turn_id,
        "next_agent_id": turn.identity.agent_id,
        "next_agent_version": turn.identity.agent_version,
        "next_status": turn.status,
        "next_version": turn.version,
        "next_body": encode_turn(turn),
        "next_created_at": turn.created_at,
        "next_events": encode_events(opened.events),
        "next_message_ids": [*(m.message_id for _, m in added), *_waiting(turn)],
    }
    yield Part(_OPENED, values)
    yield Part(_NEXT_SAID, _lists(added, "next_said"))


def _waiting(turn: Turn) -> Sequence[str]:
    return [queued.message.message_id for queued in turn.queue]
