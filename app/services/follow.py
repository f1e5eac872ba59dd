"""Following a turn: replay and live are one loop, so there is no seam to lose an event in.

    read what is stored behind the cursor; hand it on; hand on what the open answer has beyond it;
    wait until something changes; again.

While only the open answer grows nothing new is stored, so nothing is read: a streamed token costs
no statement.

The cursor is a version and, inside an open answer, how many code points of it the reader has. The
durable text events come later than the live text they cover, so what the reader has already is cut
from them. Waiting is on a level that every change sets: a hint that is lost costs a poll interval.

A worker that has lost its claim may go on writing for a moment. So live text is handed on only
while its attempt is the one that is open by what the reader has seen, never because it is there.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from typing_extensions import override

from app.ports import Clock, JournalRow
from app.runner.live_text import OpenAnswer
from app.services.deps import Services
from app.turn.events import (
    Event,
    ModelCompleted,
    ModelReasoning,
    ModelStarted,
    ModelText,
    StepRecovered,
    TurnPaused,
    TurnSuspended,
)
from app.turn.ids import AttemptId, Identity, TurnId
from app.turn.journal import TERMINAL_TYPES

_POLL_SECONDS = 1.0
_ROWS_AT_ONCE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How much of a turn a reader has."""

    version: int
    text: int = 0
    """Code points of the open answer."""
    reasoning: int = 0

    @override
    def __str__(self) -> str:
        return f"{self.version}:{self.text}" if self.text else str(self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """An event with the cursor of a reader that has it."""

    cursor: Cursor
    event: Event
    occurred_at: datetime
    durable: bool
    """Whether it is stored; a live piece of text is not."""


Feed: TypeAlias = AsyncIterator[Sequence[Followed]]
"""What came at one moment, together: the events of a commit, or what a model has just written."""


async def follow(
    services: Services, identity: Identity, cursor: Cursor, *, stopping: asyncio.Event
) -> Feed:
    """Everything behind `cursor`, then what happens, until the turn has ended or is deleted."""
    turn_id = identity.turn_id
    with ExitStack() as stack:
        wakeup = stack.enter_context(services.wakeups.watch(turn_id))
        stack.enter_context(services.live_text.read(turn_id, wakeup))
        stack.enter_context(services.recent.followed(turn_id))
        reading = _Reading(cursor, await _attempt_in_flight(services, turn_id))
        may_have_changed = True
        while not stopping.is_set():
            rows = await _news(services, turn_id, reading.cursor) if may_have_changed else ()
            for row in rows:
                if news := reading.stored(row):
                    yield news
                if row.events[-1].type in TERMINAL_TYPES:
                    return
            if len(rows) == _ROWS_AT_ONCE:
                continue
            if pieces := reading.live(services.live_text.answer(turn_id), services.clock):
                yield pieces
            elif may_have_changed and not rows and await services.turns.load(turn_id) is None:
                return  # it went with its conversation
            may_have_changed = await wakeup.wait(_POLL_SECONDS)


@dataclass(slots=True)
class _Reading:
    """How far a reader has come, and which attempt is open by what it has seen."""

    cursor: Cursor
    attempt_id: AttemptId | None

    def stored(self, row: JournalRow) -> Sequence[Followed]:
        """What of a row behind the cursor the reader does not have."""
        news = list(_stored_behind(self.cursor, row))
        at = news[-1].cursor if news else self.cursor
        self.cursor = replace(at, version=row.sequence)
        for event in row.events:
            self.attempt_id = _attempt_open_after(event, self.attempt_id)
        return news

    def live(self, answer: OpenAnswer | None, clock: Clock) -> Sequence[Followed]:
        """What the open answer has beyond the cursor."""
        pieces = list(_live_behind(self.cursor, answer, self.attempt_id, clock))
        if pieces:
            self.cursor = pieces[-1].cursor
        return pieces


async def _news(services: Services, turn_id: TurnId, cursor: Cursor) -> Sequence[JournalRow]:
    """What this process has just stored, or else what the database has.

    Where both have news, another process's are found at the next wake-up or poll.
    """
    at_hand = services.recent.behind(turn_id, cursor.version)
    if at_hand:
        return at_hand
    return await services.turns.journal(turn_id, after=cursor.version, limit=_ROWS_AT_ONCE)


async def _attempt_in_flight(services: Services, turn_id: TurnId) -> AttemptId | None:
    """Read before the journal, whose events correct it."""
    turn = await services.turns.load(turn_id)
    return None if turn is None else turn.attempt_in_flight


def _attempt_open_after(event: Event, attempt_id: AttemptId | None) -> AttemptId | None:
    match event:
        case ModelStarted(attempt_id=begun):
            return begun
        case ModelCompleted() | StepRecovered() | TurnSuspended() | TurnPaused():
            return None
        case _:
            return attempt_id


def _stored_behind(cursor: Cursor, row: JournalRow) -> Iterator[Followed]:
    for sequence, event in enumerate(row.events, start=row.sequence - len(row.events) + 1):
        if sequence <= cursor.version:
            continue
        cursor, news = _past(cursor, sequence, event)
        if news is not None:
            yield Followed(cursor=cursor, event=news, occurred_at=row.occurred_at, durable=True)


def _live_behind(
    cursor: Cursor, answer: OpenAnswer | None, attempt_id: AttemptId | None, clock: Clock
) -> Iterator[Followed]:
    if answer is None or answer.attempt_id != attempt_id:
        return
    if cursor.version < answer.started_version:
        return
    for piece in _beyond(cursor, answer):
        cursor = _with(cursor, piece)
        yield Followed(cursor=cursor, event=piece, occurred_at=clock(), durable=False)


def _past(cursor: Cursor, sequence: int, event: Event) -> tuple[Cursor, Event | None]:
    """The cursor behind a stored event, and what of the event the reader does not have."""
    moved = replace(cursor, version=sequence)
    match event:
        case ModelText(offset=offset, text=text):
            news = text[max(cursor.text - offset, 0) :]
            start = offset + len(text) - len(news)
            moved = replace(moved, text=max(cursor.text, offset + len(text)))
            return moved, replace(event, offset=start, text=news) if news else None
        case ModelReasoning(offset=offset, text=text):
            news = text[max(cursor.reasoning - offset, 0) :]
            start = offset + len(text) - len(news)
            moved = replace(moved, reasoning=max(cursor.reasoning, offset + len(text)))
            return moved, replace(event, offset=start, text=news) if news else None
        case ModelStarted() | ModelCompleted() | StepRecovered() | TurnSuspended() | TurnPaused():
            return Cursor(version=sequence), event  # no answer is open, or another one
        case _:
            return moved, event


def _beyond(cursor: Cursor, answer: OpenAnswer) -> list[ModelText | ModelReasoning]:
    pieces: list[ModelText | ModelReasoning] = []
    if news := answer.reasoning[cursor.reasoning :]:
        pieces.append(
            ModelReasoning(attempt_id=answer.attempt_id, offset=cursor.reasoning, text=news)
        )
    if news := answer.text[cursor.text :]:
        pieces.append(ModelText(attempt_id=answer.attempt_id, offset=cursor.text, text=news))
    return pieces


def _with(cursor: Cursor, piece: ModelText | ModelReasoning) -> Cursor:
    end = piece.offset + len(piece.text)
    if isinstance(piece, ModelText):
        return replace(cursor, text=end)
    return replace(cursor, reasoning=end)
