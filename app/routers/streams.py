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
    framed,
    snapshot_data,
)
from app.routers.reader import reader_of
from app.services.deps import Caller
from app.services.follow import Bounds, Permit, follow, follow_conversation
from app.services.found import get_turn
from app.services.reading import Cursor, Followed, Snapshot
from app.turn.events import Event
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
                    yield await self._framed(stored, news)

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
                    yield await self._framed(stored, news, f"{stored.number}:")

        return event_stream(frames(), {}, open_while=self._counted())

    async def written(self, stored: StoredTurn, followed: Followed) -> Envelope:
        """The event as its reader may see it."""
        if isinstance(followed.event, Snapshot):
            return await self._snapshot(stored, followed, followed.event)
        return self._event(stored, followed, followed.event)

    async def _framed(
        self, stored: StoredTurn, news: Sequence[Followed], number: str = ""
    ) -> list[bytes]:
        """As they are sent, with the turn's `number` in front of their places."""
        return [
            framed(await self._snapshot(stored, one, one.event), f"{number}{one.cursor}")
            if isinstance(one.event, Snapshot)
            else self._frame(stored, one, one.event, number)
            for one in news
        ]

    def _frame(self, stored: StoredTurn, followed: Followed, event: Event, number: str) -> bytes:
        """The event as it is sent, encoded once for all readers that may see the same of it."""
        turn_id, cursor = stored.turn.identity.turn_id, followed.cursor
        if not self.state.services.journals.has_several_readers(turn_id):
            return framed(self._event(stored, followed, event), f"{number}{cursor}")
        key: Hashable = (
            turn_id,
            number,
            cursor.version,
            cursor.text,
            cursor.reasoning,
            event.type,
            getattr(event, "offset", None),
            self.caller.principal.role,
            self.language,
        )
        frame = self.state.frames.get(key)
        if frame is None:
            frame = framed(self._event(stored, followed, event), f"{number}{cursor}")
            self.state.frames.keep(key, frame)
        return frame

    async def _snapshot(
        self, stored: StoredTurn, followed: Followed, snapshot: Snapshot
    ) -> Envelope:
        identity = stored.turn.identity
        now = await get_turn(self.state.services, self.caller, identity.turn_id)
        resource = await turn_resource(self.state.services, self.caller, now, self.language)
        return envelope(followed, identity, snapshot_data(snapshot, resource))

    def _event(self, stored: StoredTurn, followed: Followed, event: Event) -> Envelope:
        identity = stored.turn.identity
        reader = reader_of(self.state.services, self.caller, self.language)
        return envelope(followed, identity, event_data(event, reader, identity.turn_id))

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
