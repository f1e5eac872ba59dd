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

A turn that comes to be at work where a worker has a place for it is claimed by the statement that
brings it there. Only a retry that becomes due meanwhile may be claimed by somebody before; the
epoch that this statement makes is the later one, and fences the other out.

The case that surprised us: an append that finds nothing does not say why. The second look, outside
the statement, tells a lost claim from a moved version; it cannot be wrong about a lost claim,
because an epoch never goes back.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from app.ports import Claim, Command, Commit, Conversation, Lease
from app.store.change_parts import (
    TOUCHED,
    Added,
    Part,
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
_UNTIL = "clock_timestamp() + make_interval(secs => CAST(:lease_seconds AS double precision))"
_TO_BE_DRIVEN = f"""{_AT_WORK},
        claimed_by = :claimed_by, claimed_until = {_UNTIL}, claim_epoch = claim_epoch + 1"""

_Claimed: TypeAlias = Literal["by nobody", "by its owner", "with the change"]


def _moved(to: str, claimed: _Claimed) -> str:
    owner = _OF_ITS_OWNER if claimed == "by its owner" else ""
    return f"""
moved AS (
    UPDATE turns SET
        version = :version, status = :status, body = :body, updated_at = :at,
        stop_requested = :stop_requested, {to},
        deaths = CASE WHEN :is_progress THEN 0 ELSE deaths END,
        waiting_since = :waiting_since, wait_expires_at = :wait_expires_at, waits_for = :waits_for
    WHERE turn_id = :turn_id AND version = :expected {owner}
    RETURNING turn_id, tenant_id, conversation_id, version, status, claim_epoch
)"""


_MOVED: Mapping[tuple[bool, _Claimed], str] = {
    (True, "with the change"): _moved(_TO_BE_DRIVEN, "with the change"),
    (True, "by its owner"): _moved(_AT_WORK, "by its owner"),
    (False, "by its owner"): _moved(_AT_REST, "by its owner"),
    (True, "by nobody"): _moved(_AT_WORK, "by nobody"),
    (False, "by nobody"): _moved(_AT_REST, "by nobody"),
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


def _created_in(claim: str) -> str:
    return f"""
moved AS (
    INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status,
                       version, body, created_at, updated_at, runnable_at, claimed_by,
                       claimed_until, claim_epoch, stop_requested)
    SELECT :turn_id, tenant_id, conversation_id, :agent_id, :agent_version, :status, :version,
           :body, :created_at, :at,
           CASE WHEN :is_at_work THEN clock_timestamp() END, {claim}, false
    FROM conversation
    RETURNING turn_id, tenant_id, conversation_id, version, status, claim_epoch
)"""


_CREATED = _created_in("NULL, NULL, 0")
_CREATED_TO_BE_DRIVEN = _created_in(f":claimed_by, {_UNTIL}, 1")


def creating(
    conversation: Conversation, commit: Commit, added: Added, command: Command
) -> tuple[Statement, Mapping[str, object]]:
    """The statement that opens a turn, and its arguments by name."""
    return composed(
        [
            _conversation(conversation, commit, command),
            _created(commit),
            brought(commit.brought),
            *consequences(commit, added, command, before=None),
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
    if commit.lease is None:
        return Part(_CREATED, values)
    return Part(_CREATED_TO_BE_DRIVEN, {**values, **_leased(commit.lease)})


def _leased(lease: Lease) -> Mapping[str, object]:
    return {"claimed_by": lease.worker, "lease_seconds": lease.seconds}


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
    if commit.lease is not None:
        values = {**values, **_leased(commit.lease)}
    elif claim is not None:
        values = {**values, "claimed_by": claim.worker, "claim_epoch": claim.epoch}
    return Part(_MOVED[turn.is_at_work, _claimed(commit, claim)], values)


def _claimed(commit: Commit, claim: Claim | None) -> _Claimed:
    if commit.lease is not None:
        return "with the change"
    return "by nobody" if claim is None else "by its owner"
