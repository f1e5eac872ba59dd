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

from collections.abc import Mapping

from app.ports import Claim, Command, Commit, Conversation
from app.store.change_parts import (
    TOUCHED,
    Added,
    Part,
    added_by,
    brought,
    composed,
    consequences,
    message_id_of,
    successor,
    touched,
)
from app.store.statements import Statement
from app.store.turn_codec import encode_turn
from app.store.wait_records import wait_columns
from app.turn.crash_loop import makes_progress
from app.turn.events import TurnStarted

# A claim ends with the commit that brings the turn to rest; until then `runnable_at` stands still,
# so that the row keeps its place in the index and the update stays within its page.
_AT_WORK = "runnable_at = least(runnable_at, clock_timestamp())"
_AT_REST = "runnable_at = CAST(:due_at AS timestamptz), claimed_by = NULL, claimed_until = NULL"
_OF_ITS_OWNER = "AND claimed_by = :claimed_by AND claim_epoch = :claim_epoch"


def _moved(*, is_at_work: bool, is_claimed: bool) -> str:
    return f"""
moved AS (
    UPDATE turns SET
        version = :version, status = :status, body = :body, updated_at = :at,
        stop_requested = :stop_requested, {_AT_WORK if is_at_work else _AT_REST},
        deaths = CASE WHEN :is_progress THEN 0 ELSE deaths END,
        waiting_since = :waiting_since, wait_expires_at = :wait_expires_at, waits_for = :waits_for
    WHERE turn_id = :turn_id AND version = :expected {_OF_ITS_OWNER if is_claimed else ""}
    RETURNING turn_id, tenant_id, conversation_id, version, status
)"""


_MOVED = {
    (is_at_work, is_claimed): _moved(is_at_work=is_at_work, is_claimed=is_claimed)
    for is_at_work in (True, False)
    for is_claimed in (True, False)
}

_NEW_CONVERSATION = f"""
conversation AS (
    INSERT INTO conversations AS c (tenant_id, conversation_id, owner_id, agent_id, title,
                                    created_at, updated_at)
    VALUES (:tenant_id, :conversation_id, :owner_id, :conversation_agent_id, :title,
            clock_timestamp(), clock_timestamp())
    ON CONFLICT (tenant_id, conversation_id) DO UPDATE SET {TOUCHED}
    RETURNING tenant_id, conversation_id
)"""
# Behind a history there is nothing to begin when that has been deleted meanwhile.
_SAME_CONVERSATION = f"""
conversation AS (
    UPDATE conversations c SET {TOUCHED}
    WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id
    RETURNING tenant_id, conversation_id
)"""

_CREATED = """
moved AS (
    INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status,
                       version, body, created_at, updated_at, runnable_at, claim_epoch,
                       stop_requested)
    SELECT :turn_id, tenant_id, conversation_id, :agent_id, :agent_version, :status, :version,
           :body, :created_at, :at,
           CASE WHEN :is_at_work THEN clock_timestamp() END, 0, false
    FROM conversation
    RETURNING turn_id, tenant_id, conversation_id, version, status
)"""


def creating(
    conversation: Conversation, commit: Commit, command: Command
) -> tuple[Statement, Mapping[str, object]]:
    """The statement that opens a turn, and its arguments by name."""
    return composed(
        [
            _conversation(conversation, commit, command),
            _created(commit),
            brought(commit.brought),
            *consequences(commit, added_by(commit.events), command, before=None),
        ]
    )


def _conversation(conversation: Conversation, commit: Commit, command: Command) -> Part:
    named: Mapping[str, object] = {
        "tenant_id": conversation.tenant_id,
        "conversation_id": conversation.conversation_id,
        **message_id_of(command),
    }
    match commit.events[0]:
        case TurnStarted(first_position=position) if position and not commit.brought:
            return Part(_SAME_CONVERSATION, named)
        case _:
            described: Mapping[str, object] = {
                "owner_id": conversation.owner_id,
                "conversation_agent_id": conversation.agent_id,
                "title": conversation.title,
            }
            return Part(_NEW_CONVERSATION, {**named, **described})


def _created(commit: Commit) -> Part:
    turn = commit.after
    values: Mapping[str, object] = {
        "turn_id": turn.identity.turn_id,
        "agent_id": turn.identity.agent_id,
        "agent_version": turn.identity.agent_version,
        "status": turn.status,
        "version": turn.version,
        "body": encode_turn(turn),
        "created_at": turn.created_at,
        "is_at_work": turn.is_at_work,
    }
    return Part(_CREATED, values)


def appending(
    commit: Commit, added: Added, claim: Claim | None, command: Command | None
) -> tuple[Statement, Mapping[str, object]]:
    """The statement that carries out a commit, and its arguments by name."""
    return composed(
        [
            _changed(commit, claim),
            touched(command),
            *consequences(commit, added, command, before=commit.before),
            *successor(commit.successor),
        ]
    )


def _changed(commit: Commit, claim: Claim | None) -> Part:
    turn = commit.after
    values: Mapping[str, object] = {
        "version": turn.version,
        "expected": commit.before.version,
        "status": turn.status,
        "body": encode_turn(turn),
        "is_progress": makes_progress(commit.events),
        "due_at": turn.due_at,
        "turn_id": turn.identity.turn_id,
        "stop_requested": turn.cancel_requested or turn.pause_requested,
        **wait_columns(turn),
    }
    if claim is not None:
        values = {**values, "claimed_by": claim.worker, "claim_epoch": claim.epoch}
    return Part(_MOVED[turn.is_at_work, claim is not None], values)
