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

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NoReturn

import asyncpg

from app.ports import (
    Claim,
    ClaimLost,
    Command,
    Commit,
    Conversation,
    HistoryMessage,
    JournalRow,
    OutcomeUnknown,
    Scope,
    StoredTurn,
    StoreUnavailable,
    VersionConflict,
)
from app.store.message_codec import EncodedMessage, decode, encode
from app.store.pool import Database, Row
from app.store.turn_codec import (
    TURN_COLUMNS,
    decode_events,
    decode_turn,
    encode_events,
    encode_failure,
    encode_turn,
    positions_in,
)
from app.turn.events import Event, ModelFailed, added_message
from app.turn.ids import CallId, ConversationId, TurnId
from app.turn.state import Completed, RetryScheduled, Status, Turn
from app.turn.transcript import AssistantMessage, Message

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
_APPEND = (
    """
WITH moved AS (
    UPDATE turns SET
        version = $21, status = $22, body = $23, updated_at = clock_timestamp(),
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

_CREATE = (
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
                       version, body, created_at, updated_at, runnable_at, claim_epoch)
    SELECT $26, tenant_id, conversation_id, $27, $28, $29, $30, $31, $32, clock_timestamp(),
           clock_timestamp(), 0
    FROM conversation
    RETURNING turn_id, tenant_id, conversation_id, version, status
),
"""
    + _CONSEQUENCES
)

_TURN = f"SELECT {TURN_COLUMNS} FROM turns t"
_SCOPED = f"""
SELECT {TURN_COLUMNS} FROM turns t JOIN conversations c USING (tenant_id, conversation_id)
WHERE t.tenant_id = $1 AND ($2::text IS NULL OR c.owner_id = $2)
"""


class PostgresTurns:
    """`ports.TurnStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, conversation: Conversation, commit: Commit, command: Command) -> None:
        turn = commit.after
        identity = turn.identity
        arguments = (
            *_consequences(commit, _added(commit.events), command, before=None),
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
        await self._write(_CREATE, arguments)

    async def append(
        self, commit: Commit, *, claim: Claim | None = None, command: Command | None = None
    ) -> Sequence[HistoryMessage]:
        turn = commit.after
        due = turn.state.due_at if isinstance(turn.state, RetryScheduled) else None
        added = _added(commit.events)
        arguments = (
            *_consequences(commit, added, command, before=commit.before),
            turn.version,
            turn.status,
            encode_turn(turn),
            turn.status in _AT_WORK,
            due,
            turn.identity.turn_id,
            commit.before.version,
            None if claim is None else claim.worker,
            None if claim is None else claim.epoch,
        )
        if not await self._write(_APPEND, arguments):
            await self._explain(commit.before, claim)
        return [
            HistoryMessage(position=position, body=message.body, call_id=_call_id(message.call_id))
            for position, message in added
        ]

    async def _write(self, statement: str, arguments: tuple[object, ...]) -> bool:
        """Whether a row was changed."""
        try:
            return await self._database.value(statement, *arguments) is not None
        except asyncpg.UniqueViolationError as error:
            raise VersionConflict(str(error)) from error
        except StoreUnavailable as error:
            raise OutcomeUnknown(str(error)) from error

    async def _explain(self, expected: Turn, claim: Claim | None) -> NoReturn:
        turn_id = expected.identity.turn_id
        row = await self._database.row(
            "SELECT version, claimed_by, claim_epoch FROM turns WHERE turn_id = $1", turn_id
        )
        if claim and (row is None or (row["claimed_by"], row["claim_epoch"]) != _owner(claim)):
            message = f"turn {turn_id!r} is no longer claimed by {claim.worker!r}"
            raise ClaimLost(message)
        found = None if row is None else row["version"]
        message = f"turn {turn_id!r} is at version {found}, not {expected.version}"
        raise VersionConflict(message)

    async def load(self, turn_id: TurnId) -> Turn | None:
        row = await self._database.row(f"{_TURN} WHERE t.turn_id = $1", turn_id)
        return None if row is None else decode_turn(row)

    async def find(self, scope: Scope, turn_id: TurnId) -> StoredTurn | None:
        query = f"{_SCOPED} AND t.turn_id = $3"
        row = await self._database.row(query, scope.tenant_id, scope.owner_id, turn_id)
        return None if row is None else stored_turn(row)

    async def page(
        self,
        scope: Scope,
        *,
        statuses: Sequence[Status],
        conversation_id: ConversationId | None,
        before: tuple[datetime, TurnId] | None,
        limit: int,
    ) -> Sequence[StoredTurn]:
        query = f"""{_SCOPED}
            AND (cardinality($3::text[]) = 0 OR t.status = ANY($3))
            AND ($4::text IS NULL OR t.conversation_id = $4)
            AND ($5::timestamptz IS NULL OR (t.created_at, t.turn_id) < ($5, $6))
            ORDER BY t.created_at DESC, t.turn_id DESC LIMIT $7"""
        created_at, turn_id = before or (None, None)
        rows = await self._database.rows(
            query,
            scope.tenant_id,
            scope.owner_id,
            list(statuses),
            conversation_id,
            created_at,
            turn_id,
            limit,
        )
        return [stored_turn(row) for row in rows]

    async def history(self, turn: Turn) -> Sequence[HistoryMessage]:
        rows = await self._database.rows(
            "SELECT position, body, call_id FROM messages "
            "WHERE tenant_id = $1 AND conversation_id = $2 ORDER BY position",
            turn.identity.tenant_id,
            turn.identity.conversation_id,
        )
        return [
            HistoryMessage(position=row["position"], body=row["body"], call_id=row["call_id"])
            for row in rows
        ]

    async def message_at(self, turn: Turn, position: int) -> Message | None:
        return (await self._messages_at(turn.identity.turn_id, {position})).get(position)

    async def final_texts(self, turns: Sequence[Turn]) -> Mapping[TurnId, str]:
        places = {
            turn.identity.turn_id: turn.state.position
            for turn in turns
            if isinstance(turn.state, Completed) and turn.state.position is not None
        }
        if not places:
            return {}
        rows = await self._database.rows(
            "SELECT t.turn_id, m.position, m.role, m.body, m.meta, m.message_id, m.call_id "
            "FROM unnest($1::text[], $2::int[]) AS f (turn_id, position) "
            "JOIN turns t USING (turn_id) "
            "JOIN messages m USING (tenant_id, conversation_id, position)",
            list(places),
            list(places.values()),
        )
        messages = {TurnId(row["turn_id"]): decode_message(row) for row in rows}
        return {t: m.text for t, m in messages.items() if isinstance(m, AssistantMessage)}

    async def journal(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[JournalRow]:
        rows = await self._database.rows(
            "SELECT sequence, occurred_at, events FROM turn_events "
            "WHERE turn_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
            turn_id,
            after,
            limit,
        )
        wanted: set[int] = set().union(*(positions_in(row["events"]) for row in rows))
        messages = await self._messages_at(turn_id, wanted) if wanted else {}
        return [
            JournalRow(
                sequence=row["sequence"],
                occurred_at=row["occurred_at"],
                events=decode_events(row["events"], messages),
            )
            for row in rows
        ]

    async def _messages_at(self, turn_id: TurnId, positions: set[int]) -> dict[int, Message]:
        rows = await self._database.rows(
            "SELECT m.position, m.role, m.body, m.meta, m.message_id, m.call_id "
            "FROM turns t JOIN messages m USING (tenant_id, conversation_id) "
            "WHERE t.turn_id = $1 AND m.position = ANY($2::int[])",
            turn_id,
            sorted(positions),
        )
        return {row["position"]: decode_message(row) for row in rows}


def stored_turn(row: Row) -> StoredTurn:
    return StoredTurn(turn=decode_turn(row), updated_at=row["updated_at"])


def decode_message(row: Row) -> Message:
    return decode(
        EncodedMessage(
            role=row["role"],
            body=row["body"],
            meta=row["meta"],
            message_id=row["message_id"],
            call_id=row["call_id"],
        )
    )


def _owner(claim: Claim) -> tuple[str, int]:
    return (claim.worker, claim.epoch)


_Added = Sequence[tuple[int, EncodedMessage]]


def _added(events: Sequence[Event]) -> _Added:
    pairs = (added_message(event) for event in events)
    return [(pair[0], encode(pair[1])) for pair in pairs if pair is not None]


def _call_id(call_id: str | None) -> CallId | None:
    return None if call_id is None else CallId(call_id)


def _consequences(
    commit: Commit, added: _Added, command: Command | None, *, before: Turn | None
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


def _message_columns(added: _Added) -> tuple[list[object], ...]:
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
