"""The message with which the model asked for the open calls: their arguments are in it."""

from collections.abc import Iterable, Mapping

from app.ports import TurnStore
from app.turn.events import Event, ModelCompleted
from app.turn.ids import CallId
from app.turn.journal import JournalError
from app.turn.state import Turn
from app.turn.transcript import AssistantMessage


class AskedCalls:
    """Remembered from the model's answer, or read where a turn is taken up behind it."""

    def __init__(self, store: TurnStore) -> None:
        self._store = store
        self._message: AssistantMessage | None = None

    def sees(self, events: Iterable[Event]) -> None:
        """What a commit has brought."""
        for event in events:
            if isinstance(event, ModelCompleted) and event.message is not None:
                self._message = event.message

    def forget(self) -> None:
        """The turn was changed by others meanwhile."""
        self._message = None

    async def arguments(self, turn: Turn, asked_at: int) -> Mapping[CallId, str]:
        """The arguments by call, JSON as stored, of the message at that place.

        Raises:
            JournalError: no message of the model is there.
        """
        message = self._message or await self._store.message_at(turn, asked_at)
        if not isinstance(message, AssistantMessage):
            wrong = f"no message of the model at {asked_at}"
            raise JournalError(wrong)
        self._message = message
        return {call.call_id: call.arguments for call in message.tool_calls}
