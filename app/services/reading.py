"""How far a reader of a turn's events has come, and what of the next row is news to it.

The cursor is a version and, inside an open answer, how many code points of it the reader has. The
durable text events come later than the live text they cover, so what the reader has already is cut
from them.

A worker that has lost its claim may go on writing for a moment. So live text is handed on only
while its attempt is the one that is open by what the reader has seen, never because it is there.

Where rows are missing in front of a complete answer, its pieces of text were folded into it, and
the reader is given what it does not have of the answer in one piece. Where they are missing for
good, it is first told so by a snapshot.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from typing_extensions import override

from app.ports import Clock, JournalRow
from app.runner.live_text import OpenAnswer
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
from app.turn.ids import AttemptId
from app.turn.transcript import AssistantMessage


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
class Snapshot:
    """Events up to a place are not kept any more: the turn as it is stands for them."""

    pruned_through: int
    type: Literal["SNAPSHOT"] = "SNAPSHOT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """An event with the cursor of a reader that has it."""

    cursor: Cursor
    event: Event | Snapshot
    occurred_at: datetime
    durable: bool
    """Whether it is stored as it is; a live piece of text is not."""


_Piece: TypeAlias = ModelText | ModelReasoning


@dataclass(slots=True)
class Reading:
    """How far a reader has come, and which attempt is open by what it has seen."""

    cursor: Cursor
    attempt_id: AttemptId | None
    _was_told_of_a_gap: bool = False

    def lacks_something_before(self, rows: Sequence[JournalRow]) -> bool:
        """Whether rows are missing behind the cursor, or between two of these."""
        version = self.cursor.version
        for row in rows:
            if _first(row) > version + 1:
                return True
            version = row.sequence
        return False

    def _lacks_what_is_before(self, row: JournalRow) -> bool:
        return _first(row) > self.cursor.version + 1

    def pruned(self, through: int, row: JournalRow) -> Sequence[Followed]:
        """A snapshot in place of what was dropped between the cursor and a row, if it was."""
        if self.cursor.version >= through or not self._lacks_what_is_before(row):
            return ()
        self.cursor, self.attempt_id = Cursor(version=through), None
        self._was_told_of_a_gap = True
        snapshot = Snapshot(pruned_through=through)
        return [_followed(self.cursor, snapshot, row.occurred_at, durable=False)]

    def stored(self, row: JournalRow) -> Sequence[Followed]:
        """What of a row behind the cursor the reader does not have."""
        news: list[Followed] = []
        if self._lacks_what_is_before(row) or self._was_told_of_a_gap:
            news += _folded_before(self.cursor, row)
            self._was_told_of_a_gap = False
            self.cursor = news[-1].cursor if news else self.cursor
        for sequence, event in enumerate(row.events, start=_first(row)):
            self.attempt_id = _attempt_open_after(event, self.attempt_id)
            if sequence > self.cursor.version:
                self.cursor, told = _past(self.cursor, sequence, event)
                if told is not None:
                    news.append(_followed(self.cursor, told, row.occurred_at))
        return news

    def live(self, answer: OpenAnswer | None, clock: Clock) -> Sequence[Followed]:
        """What the open answer has beyond the cursor."""
        pieces = list(_live_behind(self.cursor, answer, self.attempt_id, clock))
        if pieces:
            self.cursor = pieces[-1].cursor
        return pieces


def _followed(
    cursor: Cursor, event: Event | Snapshot, at: datetime, *, durable: bool = True
) -> Followed:
    return Followed(cursor=cursor, event=event, occurred_at=at, durable=durable)


def _first(row: JournalRow) -> int:
    return row.sequence - len(row.events) + 1


def _attempt_open_after(event: Event, attempt_id: AttemptId | None) -> AttemptId | None:
    match event:
        case ModelStarted(attempt_id=begun):
            return begun
        case ModelCompleted() | StepRecovered() | TurnSuspended() | TurnPaused():
            return None
        case _:
            return attempt_id


def _folded_before(cursor: Cursor, row: JournalRow) -> Iterator[Followed]:
    """In place of the rows between the cursor and this one, which held pieces of its answer."""
    last = _first(row) - 1
    for event in row.events:
        match event:
            case ModelCompleted(attempt_id=attempt_id, message=AssistantMessage() as message):
                answer = OpenAnswer(
                    attempt_id=attempt_id,
                    started_version=0,
                    text=message.text[: _offset_of(row, ModelText, len(message.text))],
                    reasoning=message.reasoning[
                        : _offset_of(row, ModelReasoning, len(message.reasoning))
                    ],
                )
                for piece in _beyond(cursor, answer):
                    cursor = _with(cursor, piece)
                    if isinstance(piece, ModelText):
                        # A reader that is cut behind the reasoning alone must not miss the text.
                        cursor = replace(cursor, version=last)
                    yield _followed(cursor, piece, row.occurred_at)
            case _:
                pass


def _offset_of(row: JournalRow, kind: type[_Piece], otherwise: int) -> int:
    """Where the first piece of a kind in the row begins."""
    return next((event.offset for event in row.events if isinstance(event, kind)), otherwise)


def _live_behind(
    cursor: Cursor, answer: OpenAnswer | None, attempt_id: AttemptId | None, clock: Clock
) -> Iterator[Followed]:
    if answer is None or answer.attempt_id != attempt_id:
        return
    if cursor.version < answer.started_version:
        return
    for piece in _beyond(cursor, answer):
        cursor = _with(cursor, piece)
        yield _followed(cursor, piece, clock(), durable=False)


def _past(cursor: Cursor, sequence: int, event: Event) -> tuple[Cursor, Event | None]:
    """The cursor behind a stored event, and what of the event the reader does not have."""
    match event:
        case ModelText(offset=offset, text=text):
            end = max(cursor.text, offset + len(text))
            past = Cursor(version=sequence, text=end, reasoning=cursor.reasoning)
            return past, _lacked(event, cursor.text)
        case ModelReasoning(offset=offset, text=text):
            end = max(cursor.reasoning, offset + len(text))
            past = Cursor(version=sequence, text=cursor.text, reasoning=end)
            return past, _lacked(event, cursor.reasoning)
        case ModelStarted() | ModelCompleted() | StepRecovered() | TurnSuspended() | TurnPaused():
            return Cursor(version=sequence), event  # no answer is open, or another one
        case _:
            return Cursor(version=sequence, text=cursor.text, reasoning=cursor.reasoning), event


def _lacked(piece: _Piece, has: int) -> Event | None:
    """What of a piece a reader lacks that has so many code points."""
    if has <= piece.offset:
        return piece if piece.text else None
    news = piece.text[has - piece.offset :]
    return replace(piece, offset=has, text=news) if news else None


def _beyond(cursor: Cursor, answer: OpenAnswer) -> list[_Piece]:
    pieces: list[_Piece] = []
    if news := answer.reasoning[cursor.reasoning :]:
        pieces.append(
            ModelReasoning(attempt_id=answer.attempt_id, offset=cursor.reasoning, text=news)
        )
    if news := answer.text[cursor.text :]:
        pieces.append(ModelText(attempt_id=answer.attempt_id, offset=cursor.text, text=news))
    return pieces


def _with(cursor: Cursor, piece: _Piece) -> Cursor:
    end = piece.offset + len(piece.text)
    if isinstance(piece, ModelText):
        return Cursor(version=cursor.version, text=end, reasoning=cursor.reasoning)
    return Cursor(version=cursor.version, text=cursor.text, reasoning=end)
