"""Turns: create, append, read. How a change is written is in `app.store.changes`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NoReturn

import asyncpg

from app.ports import (
    Claim,
    ClaimLost,
    Command,
    Commit,
    Committed,
    Conversation,
    HistoryMessage,
    InterruptedCall,
    JournalRow,
    KeyTaken,
    MessageTaken,
    OutcomeUnknown,
    Scope,
    StoredTurn,
    StoreUnavailable,
    VersionConflict,
)
from app.ports.fault_points import around, change_of_turn
from app.store.change_parts import Added, added_by
from app.store.changes import appending, creating
from app.store.interruptions import interruptions_of
from app.store.message_rows import (
    HISTORY,
    MESSAGE_COLUMNS,
    as_requested,
    decode_message,
    history_message,
)
from app.store.pool import Database, Row
from app.store.replies import KEY_CONSTRAINT
from app.store.statements import Statement
from app.store.summaries import summary_of
from app.store.turn_codec import (
    TURN_COLUMNS,
    decode_events,
    decode_failure,
    decode_turn,
    positions_in,
    readable,
)
from app.turn.failures import FailureRecord
from app.turn.ids import ConversationId, FailureId, TurnId
from app.turn.state import Turn
from app.turn.states import Completed
from app.turn.status import Status
from app.turn.transcript import AssistantMessage, Message

_REFUSED_BY: Mapping[str | None, type[Exception]] = {
    "received_pkey": MessageTaken,
    KEY_CONSTRAINT: KeyTaken,
}
"""What it means that a row is there already, where that is not another change of the turn."""

JOURNAL = """
SELECT sequence, occurred_at, events FROM turn_events
WHERE turn_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3
"""
_TURN = f"SELECT {TURN_COLUMNS} FROM turns t"
_SCOPED = f"""
SELECT {TURN_COLUMNS} FROM turns t JOIN conversations c USING (tenant_id, conversation_id)
WHERE t.tenant_id = $1 AND ($2::text IS NULL OR c.owner_id = $2)
"""


class PostgresTurns:
    """`ports.TurnStore` on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @around("commit.open")
    async def create(
        self, conversation: Conversation, commit: Commit, command: Command
    ) -> Committed:
        added = added_by(commit.events)
        epoch = await self._write(*creating(conversation, commit, added, command))
        if epoch is None:
            message = f"conversation {conversation.conversation_id!r} was deleted meanwhile"
            raise VersionConflict(message)
        return _committed(commit, added, epoch)

    @around(change_of_turn)
    async def append(
        self, commit: Commit, *, claim: Claim | None = None, command: Command | None = None
    ) -> Committed:
        added = added_by(commit.events)
        epoch = await self._write(*appending(commit, added, claim, command))
        if epoch is None:
            await self._explain(commit.before, claim)
        return _committed(commit, added, epoch)

    async def _write(self, statement: Statement, values: Mapping[str, object]) -> int | None:
        """The claim epoch of the row that was changed; `None` when none was."""
        try:
            epoch: int | None = await self._database.value(
                statement.sql, *statement.arguments(values)
            )
        except asyncpg.UniqueViolationError as error:
            refused = _REFUSED_BY.get(getattr(error, "constraint_name", None), VersionConflict)
            raise refused(str(error)) from error
        except StoreUnavailable as error:
            raise OutcomeUnknown(str(error)) from error
        return epoch

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
        found: list[StoredTurn] = []
        while len(found) < limit:
            created_at, turn_id = before or (None, None)
            rows = await self._database.rows(
                query,
                scope.tenant_id,
                scope.owner_id,
                list(statuses),
                conversation_id,
                created_at,
                turn_id,
                missing := limit - len(found),
            )
            found += readable(rows, stored_turn)
            if len(rows) < missing:
                break
            before = (rows[-1]["created_at"], TurnId(rows[-1]["turn_id"]))
        return found

    async def history(self, turn: Turn) -> Sequence[HistoryMessage]:
        identity = turn.identity
        rows = await self._database.rows(HISTORY, identity.tenant_id, identity.conversation_id)
        return as_requested(rows)

    async def message_at(self, turn: Turn, position: int) -> Message | None:
        return (await self._messages_at(turn.identity.turn_id, {position})).get(position)

    async def final_texts(self, turns: Sequence[Turn]) -> Mapping[TurnId, str]:
        places = {turn.identity.turn_id: place for turn in turns if (place := _answer_in(turn))}
        if not places:
            return {}
        rows = await self._database.rows(
            f"SELECT t.turn_id, {MESSAGE_COLUMNS} "
            "FROM unnest($1::text[], $2::int[], $3::int[]) AS f (turn_id, first, last) "
            "JOIN turns t USING (turn_id) "
            "JOIN messages m ON (m.tenant_id, m.conversation_id) = (t.tenant_id, t.conversation_id)"
            " AND m.position BETWEEN f.first AND f.last ORDER BY m.position",
            list(places),
            [first for first, _ in places.values()],
            [last for _, last in places.values()],
        )
        texts: defaultdict[TurnId, str] = defaultdict(str)
        for row in rows:
            message = decode_message(row)
            if isinstance(message, AssistantMessage) and not message.is_partial:
                texts[TurnId(row["turn_id"])] += message.text
        return texts

    async def failures(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[FailureRecord]:
        rows = await self._database.rows(
            "SELECT failure_id, model_attempt, occurred_at, body FROM model_failures "
            "WHERE turn_id = $1 AND model_attempt > $2 ORDER BY model_attempt LIMIT $3",
            turn_id,
            after,
            limit,
        )
        return [
            FailureRecord(
                failure_id=FailureId(row["failure_id"]),
                failure=decode_failure(row["body"]),
                model_attempt=row["model_attempt"],
                occurred_at=row["occurred_at"],
            )
            for row in rows
        ]

    async def interruptions(
        self, turn_id: TurnId, *, after: int, limit: int
    ) -> Sequence[InterruptedCall]:
        return await interruptions_of(self._database, turn_id, after=after, limit=limit)

    async def journal(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[JournalRow]:
        rows = await self._database.rows(
            JOURNAL,
            turn_id,
            after,
            limit,
        )
        wanted = {position for row in rows for position in positions_in(row["events"])}
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
            f"SELECT {MESSAGE_COLUMNS} "
            "FROM turns t JOIN messages m USING (tenant_id, conversation_id) "
            "WHERE t.turn_id = $1 AND m.position = ANY($2::int[])",
            turn_id,
            sorted(positions),
        )
        return {row["position"]: decode_message(row) for row in rows}


def _answer_in(turn: Turn) -> tuple[int, int] | None:
    """The places from which to which the final answer's parts stand; `None` without one."""
    match turn.state:
        case Completed(position=None, begins_at=int(first)):
            return first, turn.next_position - 1
        case Completed(position=int(last), begins_at=first):
            return last if first is None else first, last
        case _:
            return None


def stored_turn(row: Row) -> StoredTurn:
    return StoredTurn(
        turn=decode_turn(row),
        updated_at=row["updated_at"],
        number=row["number"],
        pruned_through=row["pruned_through"],
    )


def _committed(commit: Commit, added: Added, epoch: int) -> Committed:
    own, lease = commit.after.identity.turn_id, commit.lease
    said = [history_message(position, message, own) for position, message in added]
    return Committed(
        messages=[*summary_of(commit), *said],
        claim=None if lease is None else Claim(worker=lease.worker, epoch=epoch),
    )


def _owner(claim: Claim) -> tuple[str, int]:
    return (claim.worker, claim.epoch)
