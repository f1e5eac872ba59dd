"""What readers of events ask of the store, and what keeps the journal small."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from app.ports.records import JournalRow, StoredTurn
from app.turn.ids import ConversationId, TenantId, TurnId


class JournalReader(Protocol):
    """What has happened to turns."""

    async def journal(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[JournalRow]:
        """Commits whose last sequence is greater than `after`, in order."""
        ...


class FeedStore(Protocol):
    """Looks for everybody who follows something, each one statement for all of them."""

    async def versions(self, turn_ids: Sequence[TurnId]) -> Mapping[TurnId, int]:
        """The versions of those turns that are there."""
        ...

    async def turn_from(
        self, tenant_id: TenantId, conversation_id: ConversationId, number: int
    ) -> StoredTurn | None:
        """The first turn of the conversation whose number is `number` or greater."""
        ...

    async def newest(
        self, conversations: Sequence[tuple[TenantId, ConversationId]]
    ) -> Mapping[tuple[TenantId, ConversationId], int]:
        """The number of the newest turn of those conversations that are there; 0: no turn yet."""
        ...

    async def pruned_through(self, turn_id: TurnId) -> int:
        """Events up to this one are kept no more; 0 or less: all are there."""
        ...


class JournalUpkeep(Protocol):
    """The journals of turns that have ended."""

    async def to_fold(self, *, ended_before: datetime, limit: int) -> Sequence[TurnId]:
        """Turns that ended before then and whose text is still there in pieces."""
        ...

    async def whole(self, turn_id: TurnId) -> Sequence[JournalRow]:
        """All rows that are left of a turn's journal."""
        ...

    async def fold(self, turn_id: TurnId, sequences: Sequence[int]) -> None:
        """Delete these rows; the turn is folded."""
        ...

    async def prune(self, *, ended_before: datetime, limit: int) -> int:
        """Delete all but the last row of up to `limit` turns that ended before; how many."""
        ...
