"""Histories: where one ends, what a fork takes of one, and what is hidden of one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from app.ports.records import AuditEntry, Conversation, KeptReply, Scope, Standing
from app.turn.ids import ConversationId, MessageId
from app.turn.state import Turn
from app.turn.transcript import Message


class HistoryStore(Protocol):
    async def standing(self, scope: Scope, conversation_id: ConversationId) -> Standing | None:
        """How the conversation stands, if the scope may see it."""
        ...

    async def up_to(self, turn: Turn) -> Sequence[Message]:
        """What `turn` has had before it and has said itself, in order."""
        ...

    async def behind(
        self, conversation: Conversation, message_id: MessageId
    ) -> tuple[int, int] | None:
        """The places behind a user's message: the first, and the first that is free.

        `None`: there is no such message, or it is hidden for good.
        """
        ...

    async def hide(
        self,
        conversation: Conversation,
        places: tuple[int, int],
        *,
        to: MessageId | None,
        at: datetime,
        audit: AuditEntry,
        kept: KeptReply | None,
    ) -> bool:
        """Let exactly these places be hidden by a revert, until that is undone.

        Args:
            conversation: as it was seen; nothing is done, and it is `False`, when it has changed.
            places: the first one, and the first one that is not hidden.
            to: the message in front of them; `None` when nothing is hidden.
            at: becomes the time of the conversation's last change.
            audit: of the command.
            kept: its reply, if that is to be kept.

        Raises:
            KeyTaken: a request with the same key took effect first.
        """
        ...
