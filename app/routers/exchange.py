"""Commands that answer with a turn: what they have in common, so that a route says what is its own.

The answer is the turn as the command has left it, after a while if the caller prefers to wait for
it to rest, or its events from then on. For a request with an Idempotency-Key it is kept as well.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal, Protocol, TypeAlias

from fastapi import Depends, Header, Query, Request, Response
from starlette.types import Receive

from app.http.idempotency import HEADER, REPLAYED, RequestKey, kept_reply, request_key
from app.http.languages import Language
from app.http.leaving import noticed
from app.ports import ConversationSummary, KeptReply, StoredTurn
from app.routers.answers import json_answer, turn_headers, turn_resource
from app.routers.deps import AppState, CallerDep, LanguageDep, Prefer, StateDep, Until
from app.routers.preferences import Preference
from app.routers.streams import Streaming
from app.services.deps import Caller, Services
from app.services.leaving import pause_for_want_of_readers
from app.services.reading import Cursor
from app.services.turns import wait_until_at_rest
from app.turn.ids import TurnId
from app.turn.states import CallingModel

_DROPPED_WITHIN_SECONDS = 2.0
_MARGIN_SECONDS = 5
"""Beyond the time a caller waits, until its answer is taken for lost."""


class Outcome(Protocol):
    """What a command came to."""

    @property
    def stored(self) -> StoredTurn: ...
    @property
    def seen_version(self) -> int:
        """The turn's version before: events behind it are what the command brought."""
        ...

    @property
    def is_replay(self) -> bool:
        """Whether the command had been taken before, so that it has no further effect."""
        ...


OnDisconnect = Annotated[
    Literal["continue", "pause"],
    Query(
        alias="onDisconnect",
        description="What becomes of the turn when the caller hangs up before the answer (`Prefer: "
        "wait`) or the stream has ended: it goes on, or it is paused if it is at work.",
    ),
]
Render: TypeAlias = Callable[[StoredTurn, int], Awaitable[Response]]
"""The answer that is a turn, which was at that version before the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A command as it was asked, and how its caller wants to be answered."""

    state: AppState
    caller: Caller
    language: Language
    prefer: Preference
    wants_events: bool
    until_blocked: bool
    pauses_without_reader: bool
    """Whether the turn is paused when the caller hangs up before it is answered."""
    receive: Receive
    key: RequestKey | None

    @property
    def services(self) -> Services:
        return self.state.services

    async def answer(
        self, command: Callable[[Caller], Awaitable[Outcome]], render: Render | None = None
    ) -> Response:
        """Carry out `command` and answer as its caller prefers: with the turn or its events.

        The turn is a 202 unless `render` says otherwise. A replay is marked as one.
        """
        render = render or self._accepted
        wait = 0 if self.wants_events else self.prefer.wait_seconds
        if self.wants_events:
            self._streaming.check()
        done = await command(self._keeping(render, wait))
        response = await self._answer(done, render)
        if done.is_replay:
            response.headers[REPLAYED] = "true"
        return response

    async def _answer(self, done: Outcome, render: Render) -> Response:
        turn_id = done.stored.turn.identity.turn_id
        when_left = partial(self._left, turn_id) if self.pauses_without_reader else None
        if self.wants_events:
            return self._streaming.turn(
                done.stored,
                Cursor(version=done.seen_version),
                headers=turn_headers(done.stored),
                when_left=when_left,
            )
        async with nullcontext() if when_left is None else noticed(self.receive, when_left):
            stored = await wait_until_at_rest(
                self.services,
                self.caller,
                done.stored,
                seconds=self.prefer.wait_seconds,
                stopping=self.state.stopping,
            )
        response = await render(stored, done.seen_version)
        response.headers.update(self.prefer.applied)
        return response

    @property
    def _streaming(self) -> Streaming:
        return Streaming(
            state=self.state,
            caller=self.caller,
            language=self.language,
            until_blocked=self.until_blocked,
        )

    async def _left(self, turn_id: TurnId) -> None:
        await pause_for_want_of_readers(self.services, self.caller, turn_id)

    async def answer_at_once(
        self, command: Callable[[Caller], Awaitable[Outcome]], render: Render
    ) -> Response:
        """Carry out `command` and answer with the turn as it has left it."""
        done = await command(self._keeping(render, wait_seconds=0))
        return await render(done.stored, done.seen_version)

    async def answer_when_dropped(
        self, command: Callable[[Caller], Awaitable[Outcome]], render: Render
    ) -> Response:
        """As `answer_at_once`; a model call in flight is first dropped by its worker.

        That is a matter of milliseconds unless the worker is gone. A reply that is kept must not
        differ from the one given, so a request with a key does not wait.
        """
        done = await command(self._keeping(render, wait_seconds=0))
        stored = done.stored
        if self.key is None and isinstance(stored.turn.state, CallingModel):
            stored = await wait_until_at_rest(
                self.services,
                self.caller,
                stored,
                seconds=_DROPPED_WITHIN_SECONDS,
                stopping=self.state.stopping,
            )
        return await render(stored, done.seen_version)

    async def turn(self, stored: StoredTurn, status_code: int) -> Response:
        """The turn resource as an answer."""
        body = await turn_resource(self.services, self.caller, stored, self.language)
        return json_answer(body, status_code, turn_headers(stored))

    async def _accepted(self, stored: StoredTurn, _seen_version: int) -> Response:
        return await self.turn(stored, 202)

    def _keeping(self, render: Render, wait_seconds: int) -> Caller:
        """The caller, whose reply is kept if the request has a key."""
        key = self.key
        if key is None:
            return self.caller

        async def keep(what: StoredTurn | ConversationSummary, seen_version: int) -> KeptReply:
            if not isinstance(what, StoredTurn):
                raise TypeError(what)
            turn_id = what.turn.identity.turn_id
            return kept_reply(
                key,
                await render(what, seen_version),
                events_url=f"/turns/{turn_id}/events?after={seen_version}",
                answering_seconds=wait_seconds and wait_seconds + _MARGIN_SECONDS,
            )

        return replace(self.caller, keep=keep)


async def _exchange(
    request: Request,
    state: StateDep,
    caller: CallerDep,
    language: LanguageDep,
    prefer: Prefer,
    *,
    until: Until = None,
    on_disconnect: OnDisconnect = "continue",
) -> Exchange:
    return Exchange(
        state=state,
        caller=caller,
        language=language,
        prefer=prefer,
        wants_events="text/event-stream" in request.headers.get("accept", ""),
        until_blocked=until == "blocked",
        pauses_without_reader=on_disconnect == "pause",
        receive=request.receive,
        key=request_key(request),
    )


async def _described(
    _key: Annotated[
        str | None,
        Header(
            alias=HEADER,
            description="Makes the request safe to repeat for 30 days: a repetition is given the "
            "same reply, marked `Idempotency-Replayed: true`, and has no further effect. "
            "1 to 255 visible ASCII characters.",
        ),
    ] = None,
) -> None:
    """Puts the header into the API's description; who reads it is `app.http.idempotency`."""


async def _key(request: Request) -> RequestKey | None:
    return request_key(request)


ExchangeDep = Annotated[Exchange, Depends(_exchange)]
KeyDep = Annotated[RequestKey | None, Depends(_key)]
KEYED = Depends(_described)
"""For a route's `dependencies`: it takes an Idempotency-Key."""
