"""Answers that are events: of a turn or of a conversation, as they come or a page of them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass

from fastapi import Response

from app.http.languages import Language
from app.http.sse import event_stream
from app.ports import StoredTurn
from app.routers.answers import turn_resource
from app.routers.deps import AppState
from app.routers.event_schemas import (
    Envelope,
    envelope,
    event_data,
    snapshot_data,
    stream_event,
)
from app.routers.reader import reader_of
from app.services.deps import Caller
from app.services.follow import Bounds, Permit, follow, follow_conversation
from app.services.found import get_turn
from app.services.reading import Cursor, Followed, Snapshot
from app.turn.ids import ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """For whom events are written down, and what ends a stream of them early."""

    state: AppState
    caller: Caller
    language: Language
    until_blocked: bool = False

    def check(self) -> None:
        """To be asked before anything else is done for a stream.

        Raises:
            ProblemError: `too_many_streams`.
        """
        self.state.open_streams.check(self.caller.principal)

    def turn(
        self,
        stored: StoredTurn,
        cursor: Cursor,
        *,
        headers: dict[str, str] | None = None,
        when_left: Callable[[], Awaitable[None]] | None = None,
    ) -> Response:
        """The turn's events behind `cursor`, as they come."""
        services, scope = self.state.services, self.caller.principal.scope
        turn_id = stored.turn.identity.turn_id

        async def may_read() -> bool:
            return await services.turns.find(scope, turn_id) is not None

        async def frames() -> AsyncGenerator[Sequence[bytes]]:
            bounds = self._bounds(may_read)
            async with aclosing(follow(services, stored, cursor, bounds)) as feed:
                async for news in feed:
                    yield [await self._frame(stored, one, str(one.cursor)) for one in news]

        return event_stream(
            frames(), headers or {}, open_while=self._counted(), when_left=when_left
        )

    def conversation(self, conversation_id: ConversationId, place: tuple[int, Cursor]) -> Response:
        """The events of all its turns behind `place`, as they come."""
        services, scope = self.state.services, self.caller.principal.scope

        async def may_read() -> bool:
            return await services.conversations.summary(scope, conversation_id) is not None

        async def frames() -> AsyncGenerator[Sequence[bytes]]:
            bounds = self._bounds(may_read)
            of = scope.tenant_id, conversation_id
            async with aclosing(follow_conversation(services, of, place, bounds)) as feed:
                async for stored, news in feed:
                    number = stored.number
                    yield [await self._frame(stored, one, f"{number}:{one.cursor}") for one in news]

        return event_stream(frames(), {}, open_while=self._counted())

    async def written(self, stored: StoredTurn, followed: Followed) -> Envelope:
        """The event as its reader may see it."""
        identity = stored.turn.identity
        match followed.event:
            case Snapshot() as snapshot:
                now = await get_turn(self.state.services, self.caller, identity.turn_id)
                resource = await turn_resource(self.state.services, self.caller, now, self.language)
                return envelope(followed, identity, snapshot_data(snapshot, resource))
            case event:
                reader = reader_of(self.state.services, self.caller, self.language)
                return envelope(followed, identity, event_data(event, reader, identity.turn_id))

    async def _frame(self, stored: StoredTurn, followed: Followed, place: str) -> bytes:
        """The event as it is sent, encoded once for all readers that may see the same of it."""
        key: Hashable = (
            stored.turn.identity.turn_id,
            place,
            followed.event.type,
            getattr(followed.event, "offset", None),
            followed.cursor.reasoning,
            self.caller.principal.role,
            self.language,
        )
        frames = self.state.frames
        if (found := frames.get(key)) is not None:
            return found
        frame = stream_event(await self.written(stored, followed), place).frame()
        if not isinstance(followed.event, Snapshot):
            frames.keep(key, frame)
        return frame

    def _counted(self) -> AbstractContextManager[None]:
        return self.state.open_streams.counted(self.caller.principal)

    def _bounds(self, may_read: Callable[[], Awaitable[bool]]) -> Bounds:
        async def is_still_given() -> bool:
            return self.caller.is_still_known() and await may_read()

        return Bounds(
            stopping=self.state.stopping,
            permit=Permit(is_still_given=is_still_given),
            until_blocked=self.until_blocked,
        )
