"""Turns: create, append, read.

Theory. A change of a turn is one statement: a compare-and-set on the turn's version, and behind it,
fed by the row that was changed, the inserts of everything that must be true together with it: the
journal entry, the messages, the failure history, the audit row, the message id. When the version is
not the expected one the update finds no row, so nothing else happens either. There is no BEGIN and
no COMMIT around it, so there is no state between.

Races it survives. Two writers at one version: one update waits for the other's row lock, then sees
the new version and finds nothing. A worker whose claim has passed on: the epoch differs, nothing is
found. Two creations in one conversation: the partial unique index lets one through. A message id
sent twice at once: the primary key of `received` lets one through.

The case that surprised us: an append that finds nothing does not say why. The second look, outside
the statement, tells a lost claim from a moved version; it cannot be wrong about a lost claim,
because an epoch never goes back.
"""

from collections.abc import Sequence
from typing import TypeAlias

from app.ports import Claim, Command, Commit, Conversation
from app.store.message_codec import EncodedMessage, encode
from app.store.turn_codec import encode_events, encode_failure, encode_turn
from app.turn.events import Event, ModelFailed, added_message
from app.turn.state import Status, Turn

Added: TypeAlias = Sequence[tuple[int, EncodedMessage]]
"""Messages with their places, as they are stored."""

_AT_WORK = frozenset({Status.READY, Status.RUNNING})

# What every change writes beside the turn itself; `moved` is the one row that was changed.
_CONSEQUENCES = """
journal AS (
    INSERT INTO turn_events (turn_id, sequence, occurred_at, events)
    SELECT turn_id, version, clock_timestamp(), $1 FROM moved
),
said AS (
    INSERT INTO messages (tenant_id, conversation_id, position, turn_id, role, message_id,
                          call_id, body, meta, created_at)
    SELECT tenant_id, conversation_id, m.position, turn_id, m.role, m.message_id,
           m.call_id, m.body, m.meta, clock_timestamp()
    FROM moved, unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
         AS m (position, role, message_id, call_id, body, meta)
),
failed AS (
    INSERT INTO model_failures (failure_id, turn_id, failure_type, model_attempt, occurred_at, body)
    SELECT f.failure_id, turn_id, f.failure_type, f.model_attempt, f.occurred_at, f.body
    FROM moved, unnest($8::text[], $9::text[], $10::int[], $11::timestamptz[], $12::text[])
         AS f (failure_id, failure_type, model_attempt, occurred_at, body)
),
taken AS (
    INSERT INTO received (tenant_id, conversation_id, message_id, turn_id, digest, received_at)
    SELECT tenant_id, conversation_id, $13, turn_id, $14, clock_timestamp()
    FROM moved WHERE $13::text IS NOT NULL
),
audited AS (
    INSERT INTO audit (tenant_id, actor_id, at, action, outcome, conversation_id, turn_id,
                       failure_id, request_id, version_before, version_after, status_before,
                       status_after)
    SELECT tenant_id, $15, clock_timestamp(), $16, 'accepted', conversation_id, turn_id, $17, $18,
           $19, version, $20, status
    FROM moved WHERE $15::text IS NOT NULL
)
SELECT version FROM moved
"""

# A claim ends with the commit that brings the turn to rest; until then `runnable_at` stands still,
# so that the row keeps its place in the index and the update stays within its page.
APPEND = (
    """
WITH moved AS (
    UPDATE turns SET
        version = $21, status = $22, body = $23, updated_at = clock_timestamp(),
        stop_requested = $30,
        runnable_at = CASE WHEN $24 THEN least(runnable_at, clock_timestamp())
                           ELSE $25::timestamptz END,
        claimed_by = CASE WHEN $24 THEN claimed_by END,
        claimed_until = CASE WHEN $24 THEN claimed_until END
    WHERE turn_id = $26 AND version = $27
      AND ($28::text IS NULL OR (claimed_by = $28 AND claim_epoch = $29))
    RETURNING turn_id, tenant_id, conversation_id, version, status
),
touched AS (
    UPDATE conversations c SET updated_at = clock_timestamp() FROM moved
    WHERE $15::text IS NOT NULL
      AND (c.tenant_id, c.conversation_id) = (moved.tenant_id, moved.conversation_id)
),
"""
    + _CONSEQUENCES
)

CREATE = (
    """
WITH conversation AS (
    INSERT INTO conversations (tenant_id, conversation_id, owner_id, agent_id, title,
                               created_at, updated_at)
    VALUES ($21, $22, $23, $24, $25, clock_timestamp(), clock_timestamp())
    ON CONFLICT (tenant_id, conversation_id) DO UPDATE SET updated_at = clock_timestamp()
    RETURNING tenant_id, conversation_id
),
moved AS (
    INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status,
                       version, body, created_at, updated_at, runnable_at, claim_epoch,
                       stop_requested)
    SELECT $26, tenant_id, conversation_id, $27, $28, $29, $30, $31, $32, clock_timestamp(),
           clock_timestamp(), 0, false
    FROM conversation
    RETURNING turn_id, tenant_id, conversation_id, version, status
),
"""
    + _CONSEQUENCES
)


def create_arguments(
    conversation: Conversation, commit: Commit, command: Command
) -> tuple[object, ...]:
    """The arguments of `CREATE`."""
    turn = commit.after
    identity = turn.identity
    return (
        *_consequences(commit, added_by(commit.events), command, before=None),
        conversation.tenant_id,
        conversation.conversation_id,
        conversation.owner_id,
        conversation.agent_id,
        conversation.title,
        identity.turn_id,
        identity.agent_id,
        identity.agent_version,
        turn.status,
        turn.version,
        encode_turn(turn),
        turn.created_at,
    )


def append_arguments(
    commit: Commit, added: Added, claim: Claim | None, command: Command | None
) -> tuple[object, ...]:
    """The arguments of `APPEND`."""
    turn = commit.after
    return (
        *_consequences(commit, added, command, before=commit.before),
        turn.version,
        turn.status,
        encode_turn(turn),
        turn.status in _AT_WORK,
        turn.due_at,
        turn.identity.turn_id,
        commit.before.version,
        None if claim is None else claim.worker,
        None if claim is None else claim.epoch,
        turn.cancel_requested or turn.pause_requested,
    )


def added_by(events: Sequence[Event]) -> Added:
    pairs = (added_message(event) for event in events)
    return [(pair[0], encode(pair[1])) for pair in pairs if pair is not None]


def _consequences(
    commit: Commit, added: Added, command: Command | None, *, before: Turn | None
) -> tuple[object, ...]:
    """The arguments $1 to $20 of `_CONSEQUENCES`."""
    return (
        encode_events(commit.events),
        *_message_columns(added),
        *_failure_columns(commit.events),
        *_command_columns(command),
        None if before is None else before.version,
        None if before is None else before.status,
    )


def _message_columns(added: Added) -> tuple[list[object], ...]:
    messages = [message for _, message in added]
    return (
        [position for position, _ in added],
        [m.role for m in messages],
        [m.message_id for m in messages],
        [m.call_id for m in messages],
        [m.body for m in messages],
        [m.meta for m in messages],
    )


def _failure_columns(events: Sequence[Event]) -> tuple[list[object], ...]:
    records = [event.record for event in events if isinstance(event, ModelFailed)]
    return (
        [r.failure_id for r in records],
        [r.failure.type for r in records],
        [r.model_attempt for r in records],
        [r.occurred_at for r in records],
        [encode_failure(r.failure) for r in records],
    )


def _command_columns(command: Command | None) -> tuple[str | None, ...]:
    """Message id and digest, then actor, action, failureId and request id."""
    if command is None:
        return (None,) * 6
    receipt, audit = command.receipt, command.audit
    taken = (None, None) if receipt is None else (receipt.message_id, receipt.digest)
    return (*taken, audit.actor_id, audit.action, audit.failure_id, audit.request_id)
