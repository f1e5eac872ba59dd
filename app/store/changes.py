"""Turns: create, append, read.

Theory. A change of a turn is one statement: a compare-and-set on the turn's version, and behind it,
fed by the row that was changed, the inserts of everything that must be true together with it: the
journal entry, the messages, the failure history, what was interrupted and what was spent, who
approved what, which calls went outside and came back, the audit row, the message id. When the
version is not the expected one the update finds no row, so nothing else happens either. There is no
BEGIN and no COMMIT around it, so there is no state between.

Races it survives. Two writers at one version: one update waits for the other's row lock, then sees
the new version and finds nothing. A worker whose claim has passed on: the epoch differs, nothing is
found. Two creations in one conversation: the partial unique index lets one through. A message id
sent twice at once: the primary key of `received` lets one through.

A turn that ends with messages in its queue opens the next one in the same statement: the insert is
fed by the row of the update, so the partial unique index never sees both at work, and nobody sees
neither.

The case that surprised us: an append that finds nothing does not say why. The second look, outside
the statement, tells a lost claim from a moved version; it cannot be wrong about a lost claim,
because an epoch never goes back.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from app.ports import Claim, Command, Commit, Conversation, Opened
from app.store.interruptions import interruption_values, keep_interruptions
from app.store.message_codec import EncodedMessage, encode
from app.store.replies import keep_reply, kept_values
from app.store.statements import Statement
from app.store.turn_codec import encode_events, encode_failure, encode_turn
from app.store.usage import attempt_values, count_attempt
from app.store.wait_records import KEEP_WAITS, wait_columns, wait_values
from app.turn.events import Event, ModelFailed, TurnStarted
from app.turn.journal import added_message
from app.turn.state import Turn
from app.turn.transcript import Message

Added: TypeAlias = Sequence[tuple[int, EncodedMessage]]
"""Messages with their places, as they are stored."""


def _say(source: str, named: str) -> str:
    """The part of a statement that adds messages to the conversation of the turn in `source`."""
    return _insert_messages(source, "turn_id", named)


def bring(source: str) -> str:
    """The part of a statement that adds messages of no turn to the conversation of `source`."""
    return _insert_messages(source, "NULL", "brought")


def _insert_messages(source: str, turn_id: str, named: str) -> str:
    return f"""
    INSERT INTO messages (tenant_id, conversation_id, position, turn_id, role, message_id,
                          call_id, body, meta, created_at)
    SELECT tenant_id, conversation_id, m.position, {turn_id}, m.role, m.message_id,
           m.call_id, m.body, m.meta, clock_timestamp()
    FROM {source}, unnest(CAST(:{named}_position AS int[]), CAST(:{named}_role AS text[]),
                          CAST(:{named}_message_id AS text[]), CAST(:{named}_call_id AS text[]),
                          CAST(:{named}_body AS text[]), CAST(:{named}_meta AS text[]))
         AS m (position, role, message_id, call_id, body, meta)
"""


# What every change writes beside the turn itself; `moved` is the one row that was changed.
_CONSEQUENCES = f"""
journal AS (
    INSERT INTO turn_events (turn_id, sequence, occurred_at, events)
    SELECT turn_id, version, :at, :events FROM moved
),
said AS ({_say("moved", "said")}),
failed AS (
    INSERT INTO model_failures (failure_id, turn_id, failure_type, model_attempt, occurred_at, body)
    SELECT f.failure_id, turn_id, f.failure_type, f.model_attempt, f.occurred_at, f.body
    FROM moved, unnest(CAST(:failed_id AS text[]), CAST(:failed_type AS text[]),
                       CAST(:failed_attempt AS int[]), CAST(:failed_at AS timestamptz[]),
                       CAST(:failed_body AS text[]))
         AS f (failure_id, failure_type, model_attempt, occurred_at, body)
),
taken AS (
    INSERT INTO received (tenant_id, conversation_id, message_id, turn_id, digest, received_at)
    SELECT tenant_id, conversation_id, :message_id, turn_id, :message_digest, clock_timestamp()
    FROM moved WHERE CAST(:message_id AS text) IS NOT NULL
),
kept AS ({keep_reply("moved")}),
interrupted AS ({keep_interruptions("moved")}),
spent AS ({count_attempt("moved")}),
audited AS (
    INSERT INTO audit (tenant_id, actor_id, at, action, outcome, conversation_id, turn_id,
                       failure_id, call_id, request_id, version_before, version_after,
                       status_before, status_after)
    SELECT tenant_id, :actor_id, clock_timestamp(), :action, 'accepted', conversation_id, turn_id,
           :failure_id, :call_id, :request_id, :version_before, version, :status_before, status
    FROM moved WHERE CAST(:actor_id AS text) IS NOT NULL
)
"""
_RESULT = "SELECT version FROM moved"

# What a person's command does to its conversation `c`. A new message makes a revert final.
_TOUCHED = """
    updated_at = clock_timestamp(),
    hidden = CASE WHEN CAST(:message_id AS text) IS NULL THEN c.hidden
                  ELSE c.hidden + int4multirange(c.reverted) END,
    reverted = CASE WHEN CAST(:message_id AS text) IS NULL THEN c.reverted ELSE 'empty' END,
    reverted_to = CASE WHEN CAST(:message_id AS text) IS NULL THEN c.reverted_to END
"""

# A claim ends with the commit that brings the turn to rest; until then `runnable_at` stands still,
# so that the row keeps its place in the index and the update stays within its page.
_APPEND = f"""
WITH moved AS (
    UPDATE turns SET
        version = :version, status = :status, body = :body, updated_at = :at,
        stop_requested = :stop_requested,
        runnable_at = CASE WHEN :is_at_work THEN least(runnable_at, clock_timestamp())
                           ELSE CAST(:due_at AS timestamptz) END,
        claimed_by = CASE WHEN :is_at_work THEN claimed_by END,
        claimed_until = CASE WHEN :is_at_work THEN claimed_until END,
        waiting_since = :waiting_since, wait_expires_at = :wait_expires_at, waits_for = :waits_for
    WHERE turn_id = :turn_id AND version = :version_before
      AND (CAST(:claimed_by AS text) IS NULL
           OR (claimed_by = :claimed_by AND claim_epoch = :claim_epoch))
    RETURNING turn_id, tenant_id, conversation_id, version, status
),
touched AS (
    UPDATE conversations c SET {_TOUCHED} FROM moved
    WHERE CAST(:actor_id AS text) IS NOT NULL
      AND (c.tenant_id, c.conversation_id) = (moved.tenant_id, moved.conversation_id)
),
"""

# The end of a turn and the beginning of the one its queue opens. A worker leaves the conversation's
# row alone here too: a lock on it, taken behind the turn's, could meet a creation that takes them
# the other way round.
_OPEN = f""",
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
next_said AS ({_say("opened", "next_said")}),
handed_on AS (
    UPDATE received r SET turn_id = opened.turn_id FROM opened
    WHERE (r.tenant_id, r.conversation_id) = (opened.tenant_id, opened.conversation_id)
      AND r.message_id = ANY(CAST(:next_message_ids AS text[]))
)
"""

_APPENDS = {
    (keeps_waits, opens): Statement(
        _APPEND
        + (KEEP_WAITS if keeps_waits else "")
        + _CONSEQUENCES
        + (_OPEN if opens else "")
        + _RESULT
    )
    for keeps_waits in (False, True)
    for opens in (False, True)
}

_NEW_CONVERSATION = f"""
WITH conversation AS (
    INSERT INTO conversations AS c (tenant_id, conversation_id, owner_id, agent_id, title,
                                    created_at, updated_at)
    VALUES (:tenant_id, :conversation_id, :owner_id, :conversation_agent_id, :title,
            clock_timestamp(), clock_timestamp())
    ON CONFLICT (tenant_id, conversation_id) DO UPDATE SET {_TOUCHED}
    RETURNING tenant_id, conversation_id
),
"""
# Behind a history there is nothing to begin when that has been deleted meanwhile.
_SAME_CONVERSATION = f"""
WITH conversation AS (
    UPDATE conversations c SET {_TOUCHED}
    WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id
    RETURNING tenant_id, conversation_id
),
"""
_CREATE = (
    """
moved AS (
    INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status,
                       version, body, created_at, updated_at, runnable_at, claim_epoch,
                       stop_requested)
    SELECT :turn_id, tenant_id, conversation_id, :agent_id, :agent_version, :status, :version,
           :body, :created_at, :at,
           CASE WHEN :is_at_work THEN clock_timestamp() END, 0, false
    FROM conversation
    RETURNING turn_id, tenant_id, conversation_id, version, status
),
"""
    + _CONSEQUENCES
)
_CREATE_FIRST = Statement(_NEW_CONVERSATION + _CREATE + _RESULT)
_CREATE_NEXT = Statement(_SAME_CONVERSATION + _CREATE + _RESULT)
_CREATE_WITH_HISTORY = Statement(
    f"{_NEW_CONVERSATION}{_CREATE}, brought AS ({bring('moved')}) {_RESULT}"
)


def creating(
    conversation: Conversation, commit: Commit, command: Command
) -> tuple[Statement, dict[str, object]]:
    """The statement that opens a turn, and its arguments by name."""
    turn = commit.after
    identity = turn.identity
    return _create(commit), {
        **_consequences(commit, added_by(commit.events), command, before=None),
        **(brought_values(commit.brought) if commit.brought else {}),
        "tenant_id": conversation.tenant_id,
        "conversation_id": conversation.conversation_id,
        "owner_id": conversation.owner_id,
        "conversation_agent_id": conversation.agent_id,
        "title": conversation.title,
        "turn_id": identity.turn_id,
        "agent_id": identity.agent_id,
        "agent_version": identity.agent_version,
        "status": turn.status,
        "version": turn.version,
        "body": encode_turn(turn),
        "created_at": turn.created_at,
        "is_at_work": turn.is_at_work,
    }


def _create(commit: Commit) -> Statement:
    if commit.brought:
        return _CREATE_WITH_HISTORY
    match commit.events[0]:
        case TurnStarted(first_position=0):
            return _CREATE_FIRST
        case _:
            return _CREATE_NEXT


def appending(
    commit: Commit, added: Added, claim: Claim | None, command: Command | None
) -> tuple[Statement, dict[str, object]]:
    """The statement that carries out a commit, and its arguments by name."""
    turn, waits = commit.after, wait_values(commit)
    return _APPENDS[waits is not None, commit.successor is not None], {
        **_successor(commit.successor),
        **(waits or {}),
        **wait_columns(turn),
        **_consequences(commit, added, command, before=commit.before),
        "version": turn.version,
        "status": turn.status,
        "body": encode_turn(turn),
        "is_at_work": turn.is_at_work,
        "due_at": turn.due_at,
        "turn_id": turn.identity.turn_id,
        "claimed_by": None if claim is None else claim.worker,
        "claim_epoch": None if claim is None else claim.epoch,
        "stop_requested": turn.cancel_requested or turn.pause_requested,
    }


def _successor(opened: Opened | None) -> Mapping[str, object]:
    if opened is None:
        return {}
    turn = opened.turn
    said = _messages(added_by(opened.events))
    return {
        "next_turn_id": turn.identity.turn_id,
        "next_agent_id": turn.identity.agent_id,
        "next_agent_version": turn.identity.agent_version,
        "next_status": turn.status,
        "next_version": turn.version,
        "next_body": encode_turn(turn),
        "next_created_at": turn.created_at,
        "next_events": encode_events(opened.events),
        "next_message_ids": [*said["said_message_id"], *_waiting(turn)],
        **{f"next_{name}": value for name, value in said.items()},
    }


def _waiting(turn: Turn) -> Sequence[str]:
    return [queued.message.message_id for queued in turn.queue]


def added_by(events: Sequence[Event]) -> Added:
    pairs = (added_message(event) for event in events)
    return [(pair[0], encode(pair[1])) for pair in pairs if pair is not None]


def _consequences(
    commit: Commit, added: Added, command: Command | None, *, before: Turn | None
) -> dict[str, object]:
    """The arguments of `_CONSEQUENCES`."""
    return {
        "at": commit.at,
        "events": encode_events(commit.events),
        "version_before": None if before is None else before.version,
        "status_before": None if before is None else before.status,
        **_messages(added),
        **_failures(commit.events),
        **interruption_values(commit),
        **attempt_values(commit),
        **_command(command),
    }


def brought_values(history: Sequence[Message]) -> Mapping[str, Sequence[object]]:
    """The arguments of what `bring` gives: messages from the first place on."""
    return _messages([(place, encode(message)) for place, message in enumerate(history)], "brought")


def _messages(added: Added, named: str = "said") -> Mapping[str, Sequence[object]]:
    messages = [message for _, message in added]
    return {
        f"{named}_position": [position for position, _ in added],
        f"{named}_role": [m.role for m in messages],
        f"{named}_message_id": [m.message_id for m in messages],
        f"{named}_call_id": [m.call_id for m in messages],
        f"{named}_body": [m.body for m in messages],
        f"{named}_meta": [m.meta for m in messages],
    }


def _failures(events: Sequence[Event]) -> Mapping[str, object]:
    records = [event.record for event in events if isinstance(event, ModelFailed)]
    return {
        "failed_id": [r.failure_id for r in records],
        "failed_type": [r.failure.type for r in records],
        "failed_attempt": [r.model_attempt for r in records],
        "failed_at": [r.occurred_at for r in records],
        "failed_body": [encode_failure(r.failure) for r in records],
    }


def _command(command: Command | None) -> Mapping[str, object]:
    """Who asked for what; nothing of it for a worker's change."""
    audit = None if command is None else command.audit
    receipt = None if command is None else command.receipt
    return {
        "message_id": receipt and receipt.message_id,
        "message_digest": receipt and receipt.digest,
        "actor_id": audit and audit.actor_id,
        "action": audit and audit.action,
        "failure_id": audit and audit.failure_id,
        "call_id": audit and audit.call_id,
        "request_id": audit and audit.request_id,
        **kept_values(None if command is None else command.kept),
    }
