"""What must be true of every turn whatever happened to it, told from the database and the ledger.

check_history    the transcript is one that a strict provider takes (P4)
check_ledger     each call has one result, and it tells the truth about its effects (P3)
check_events     sequences without a gap, one terminal event, the last; text adds up (P10)
check_fold       the journal folds to the stored turn (P12)
check_records    one per interrupted call, in its place; attempts are counted once, tokens add up
check_audit      one row per accepted command, in its commit; failures likewise (P16)
check_one_active_turn   per conversation (P5)
"""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from app.ports import JournalRow
from app.providers import strict_history
from app.providers.openai_messages import as_sent
from app.store.message_rows import decode_message
from app.store.pool import Database, connected
from app.store.turns import PostgresTurns
from app.turn import events as e
from app.turn.agent import Effect
from app.turn.evolve import fold
from app.turn.ids import TurnId, idempotency_key
from app.turn.journal import TERMINAL_TYPES, Interruption
from app.turn.partial import written
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.status import TERMINAL, PauseCause
from app.turn.transcript import Message, Outcome, ToolResult, UserMessage
from tests.support import story


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything the database holds of one turn."""

    turn: Turn
    journal: Sequence[JournalRow]
    transcript: Sequence[Message]
    """The turn's own part of its conversation."""
    history: Sequence[str]
    """The whole conversation, as a model request carries it."""
    audit: Sequence[dict[str, Any]]
    failures: Sequence[str]
    interruptions: Sequence[dict[str, Any]]
    usage: Sequence[dict[str, Any]]

    @property
    def events(self) -> list[e.Event]:
        return [event for row in self.journal for event in row.events]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def results(self) -> dict[str, ToolResult]:
        return {m.call_id: m for m in self.transcript if isinstance(m, ToolResult)}

    @property
    def user_messages(self) -> list[str]:
        return [m.message_id for m in self.transcript if isinstance(m, UserMessage)]

    def refusals(self) -> Counter[tuple[str, str]]:
        rows = (row for row in self.audit if row["outcome"] == "refused")
        return Counter((row["action"], row["code"]) for row in rows)


class Records:
    """Reads turns for the oracles, over a connection of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns = PostgresTurns(database)

    async def of(self, turn_id: str) -> Record:
        """What is stored of the turn now."""
        turn = await self._turns.load(TurnId(turn_id))
        assert turn is not None, f"turn {turn_id} is lost"
        return Record(
            turn=turn,
            journal=await self._turns.journal(TurnId(turn_id), after=0, limit=10_000),
            transcript=[decode_message(row) for row in await self._rows(_TRANSCRIPT, turn_id)],
            history=[message.body for message in await self._turns.history(turn)],
            audit=[dict(row) for row in await self._rows(_AUDIT, turn_id)],
            failures=[row["failure_id"] for row in await self._rows(_FAILURES, turn_id)],
            interruptions=[dict(row) for row in await self._rows(_INTERRUPTIONS, turn_id)],
            usage=[dict(row) for row in await self._rows(_USAGE, turn_id)],
        )

    async def next_turn_ids(self, turn: Turn) -> list[str]:
        """The turns of the same conversation behind this one, in order."""
        identity = turn.identity
        rows = await self._rows(
            "SELECT turn_id FROM turns WHERE (tenant_id, conversation_id) = ($1, $2) "
            "AND created_at > $3 ORDER BY created_at",
            identity.tenant_id,
            identity.conversation_id,
            turn.created_at,
        )
        return [row["turn_id"] for row in rows]

    async def turn_ids(self) -> list[str]:
        return [row["turn_id"] for row in await self._rows("SELECT turn_id FROM turns")]

    async def conversations_with_two_active_turns(self) -> list[str]:
        ended = sorted(TERMINAL)
        return [row["conversation_id"] for row in await self._rows(_TWICE_ACTIVE, ended)]

    async def _rows(self, statement: str, *arguments: object) -> Sequence[Any]:
        return await self._database.rows(statement, *arguments)


_TRANSCRIPT = "SELECT * FROM messages WHERE turn_id = $1 ORDER BY position"
_AUDIT = "SELECT * FROM audit WHERE turn_id = $1 ORDER BY seq"
_FAILURES = "SELECT failure_id FROM model_failures WHERE turn_id = $1 ORDER BY model_attempt"
_INTERRUPTIONS = "SELECT * FROM tool_interruptions WHERE turn_id = $1 ORDER BY position"
_USAGE = "SELECT * FROM model_usage WHERE turn_id = $1 ORDER BY model_attempt"
_TWICE_ACTIVE = """
SELECT conversation_id FROM turns WHERE NOT status = ANY($1::text[])
GROUP BY tenant_id, conversation_id HAVING count(*) > 1
"""


@asynccontextmanager
async def records(dsn: str) -> AsyncGenerator[Records]:
    async with connected(dsn, size=1) as database:
        yield Records(database)


async def check_everything(dsn: str, ledger: story.Ledger) -> list[Record]:
    """All oracles, over all turns of a database; what they looked at."""
    async with records(dsn) as found:
        every = [await found.of(turn_id) for turn_id in await found.turn_ids()]
        await check_one_active_turn(found)
    for record in every:
        check_record(record, ledger)
    return every


def check_record(record: Record, ledger: story.Ledger) -> None:
    """All oracles that concern one turn."""
    check_fold(record)
    check_events(record.journal, record.turn)
    check_history(record)
    check_ledger(record, ledger.effects(record.turn.identity.turn_id))
    check_records(record)
    check_audit(record)


def check_history(record: Record) -> None:
    """A strict provider would take this conversation, were it asked once more."""
    if record.turn.open_calls:
        return  # then it is not asked
    sent = [as_sent(body, "somebody else") for body in record.history]
    said = [orjson.loads(message) for message in sent if message]
    asked = [*said, {"role": "user", "content": "And now?"}]
    assert strict_history.check_history(asked) is None


def check_ledger(record: Record, effects: Iterable[story.Effect]) -> None:
    """The result of every call agrees with what its tool did."""
    asked = {event.call_id: event for event in record.events if isinstance(event, e.ToolRequested)}
    done: dict[str, list[story.Effect]] = {call_id: [] for call_id in asked}
    for effect in effects:
        done[effect.call_id].append(effect)  # a KeyError: nobody asked for it
    for call_id, request in asked.items():
        result = record.results.get(call_id)
        attempts = [effect.attempt for effect in done[call_id]]
        key = idempotency_key(record.turn.identity.turn_id, request.call_id)
        assert {effect.idempotency_key for effect in done[call_id]} <= {key}
        # Not always in order: a process may stand still within a tool, and note it when it goes on.
        assert len(attempts) == len(set(attempts)), f"attempts of {call_id} ran as {attempts}"
        if request.effect is Effect.WRITES:
            assert len(attempts) <= 1, f"writing call {call_id} was run {len(attempts)} times"
        if result is not None:
            is_stopped = result.outcome is Outcome.CANCELLED and request.effect is not Effect.WRITES
            may_be = {True, False} if is_stopped else _TRUE_OF[result.outcome]
            assert bool(attempts) in may_be, (call_id, result.outcome, attempts)


_TRUE_OF = {
    Outcome.COMPLETED: {True},
    Outcome.ERROR: {True, False},
    Outcome.UNKNOWN: {True, False},
    Outcome.NOT_STARTED: {False},
    Outcome.CANCELLED: {False},
    Outcome.SUPERSEDED: {True, False},
    Outcome.REJECTED: {False},
    Outcome.EXPIRED: {False},
}
"""By outcome, whether the tool may have been entered."""


def check_events(journal: Sequence[JournalRow], turn: Turn) -> None:
    """Sequences 1, 2, 3, …; one terminal event, last; the text of each answer adds up."""
    sequence = 0
    for row in journal:
        sequence += len(row.events)
        assert row.sequence == sequence, f"a gap before sequence {row.sequence}"
    events = [event for row in journal for event in row.events]
    terminal = [event.type for event in events if event.type in TERMINAL_TYPES]
    assert terminal == ([events[-1].type] if turn.is_terminal else [])
    assert sequence == turn.version
    _check_text(events)
    for event in events:
        if isinstance(event, e.ModelStopped) and event.message is not None:
            text, _ = written(events, event.attempt_id)
            assert event.message.text == text, "what is kept is not what a reader has"


def _check_text(events: Iterable[e.Event]) -> None:
    text = ""
    for event in events:
        match event:
            case e.ModelStarted():
                assert not text, "text of a lost attempt was not withdrawn"
            case e.ModelText(offset=offset, text=piece):
                assert offset == len(text)
                text += piece
            case e.StepRecovered(discard_from=int(start)):
                text = text[:start]
            case e.ModelCompleted(message=message):
                assert text == (message.text if message else "")
                text = ""
            case e.ModelStopped() | e.ModelFailed() | e.TurnCancelled() | e.TurnFailed():
                text = ""
            case _:
                pass


def check_fold(record: Record) -> None:
    """The journal alone gives the stored turn."""
    assert fold(record.events) == record.turn


def check_records(record: Record) -> None:
    """The journal alone gives the records of what was interrupted and what was spent."""
    closed = {x.position: x for x in record.events if isinstance(x, Interruption)}
    assert [row["position"] for row in record.interruptions] == sorted(closed)
    for row in record.interruptions:
        event = closed[row["position"]]
        result = event.result
        assert (row["call_id"], row["outcome"]) == (result.call_id, result.outcome)
        assert (row["reason"], row["source_message_id"]) == (event.reason, event.source_message_id)
    state = record.turn.state
    in_flight = isinstance(state, CallingModel) and not state.has_crashed
    ended = record.turn.counters.model_attempts - in_flight
    assert [row["model_attempt"] for row in record.usage] == list(range(1, ended + 1))
    successes = sum(row["succeeded"] for row in record.usage)
    assert successes == record.turn.counters.model_successes
    for name, total in asdict(record.turn.usage).items():
        assert _sum(row[name] for row in record.usage) == total, name


def _sum(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


def check_audit(record: Record) -> None:
    """Each commit of a command has one accepted row, and each failure one of its own."""
    asked_to_pause = False
    commands: list[int] = []
    for row in record.journal:
        paused = any(_is_a_persons_pause(event) for event in row.events) and not asked_to_pause
        if paused or _by_a_person(row, record.turn):
            commands.append(row.sequence)
        for event in row.events:
            asked_to_pause = isinstance(event, e.PauseRequested) or (
                asked_to_pause and not isinstance(event, e.TurnPaused)
            )
    rows = [row["version_after"] for row in record.audit if row["version_after"] is not None]
    assert rows == commands
    failed = [x.record.failure_id for x in record.events if isinstance(x, e.ModelFailed)]
    assert record.failures == failed


def _is_a_persons_pause(event: e.Event) -> bool:
    return isinstance(event, e.TurnPaused) and event.cause is PauseCause.PERSON


def _by_a_person(row: JournalRow, turn: Turn) -> bool:
    if any(isinstance(event, e.InputPromoted | e.WaitExpired) for event in row.events):
        return False  # it was asked for when it was queued, or the time has brought it about
    return any(_is_asked_for(event, turn) for event in row.events)


def _is_asked_for(event: e.Event, turn: Turn) -> bool:
    match event:
        case e.MessageAdded(message=UserMessage()) | e.CancellationRequested() | e.PauseRequested():
            return True
        case e.InputQueued() | e.InputWithdrawn() | e.StepRecovered(attempt_id=None):
            return True
        case e.ToolApprovalDecided() | e.ToolInputReceived():
            return True
        case e.ExternalToolCompleted() | e.ExternalToolFailed():
            return True
        case e.TurnResumed(command_type=command):
            return command != "RETRY"  # which is mostly the worker's own
        case e.TurnCancelled():
            return not turn.cancel_requested  # at once, then; otherwise the worker ended it
        case _:
            return False


async def check_one_active_turn(found: Records) -> None:
    """At this instant no conversation has two turns that have not ended."""
    assert not await found.conversations_with_two_active_turns()
