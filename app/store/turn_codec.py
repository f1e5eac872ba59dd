"""Turns and events as the store keeps them.

A turn's row has columns for what is searched and a JSON body for the rest. An event that adds a
message keeps only its position: the message stands once, in the transcript, and is put back when
the journal is read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import orjson
import structlog
from pydantic import Field, TypeAdapter, ValidationError

from app.ports import TurnNotReadable
from app.store.plain_json import said_by, written
from app.store.pool import Row
from app.turn.events import Event
from app.turn.failures import ModelFailure
from app.turn.state import Turn
from app.turn.transcript import Message

Made = TypeVar("Made")

_log = structlog.get_logger(__name__)

_TURN = TypeAdapter(Turn)
_EVENTS: TypeAdapter[tuple[Event, ...]] = TypeAdapter(
    tuple[Annotated[Event, Field(discriminator="type")], ...]
)
_FAILURE = TypeAdapter(ModelFailure)
_ELSEWHERE = ("identity", "version", "created_at")
_MESSAGE_FIELD = {
    "MESSAGE_ADDED": "message",
    "MODEL_COMPLETED": "message",
    "MODEL_STOPPED": "message",
    "TOOL_COMPLETED": "result",
    "TOOL_FAILED": "result",
    "TOOL_INTERRUPTED": "result",
    "TOOL_SKIPPED": "result",
    "TOOL_REJECTED": "result",
    "EXTERNAL_TOOL_COMPLETED": "result",
    "EXTERNAL_TOOL_FAILED": "result",
}


def encode_turn(turn: Turn) -> str:
    """What of the turn has no column of its own, and is not what it is anyway.

    The body is written anew with every change: what it leaves out is not written either.
    """
    said = said_by(turn)
    for name in _ELSEWHERE:
        del said[name]
    return written(said).decode()


def decode_turn(row: Mapping[str, Any]) -> Turn:
    """The turn of a row with the columns of `TURN_COLUMNS`.

    A field that this code does not know is no less a reason to leave the turn alone than a state:
    whoever wrote it relies on it, and this code would write the turn back without it (case 56).

    Raises:
        TurnNotReadable: the body is of a newer version than this code, or damaged.
    """
    identity = {
        "turn_id": row["turn_id"],
        "tenant_id": row["tenant_id"],
        "conversation_id": row["conversation_id"],
        "agent_id": row["agent_id"],
        "agent_version": row["agent_version"],
    }
    known = {"identity": identity, "version": row["version"], "created_at": row["created_at"]}
    try:
        body: dict[str, Any] = orjson.loads(row["body"])
        return _TURN.validate_python(body | known, extra="forbid")
    except (ValidationError, orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        # Without its cause, whose text would quote the turn.
        raise TurnNotReadable(row["turn_id"]) from None


def readable(rows: Iterable[Row], made: Callable[[Row], Made]) -> Iterator[Made]:
    """What is made of the rows whose turns this code can read; it says which those are not."""
    for row in rows:
        try:
            yield made(row)
        except TurnNotReadable:
            _log.warning("turn_not_readable", turn_id=row["turn_id"], version=row["version"])


TURN_COLUMNS = (
    "t.turn_id, t.tenant_id, t.conversation_id, t.agent_id, t.agent_version, "
    "t.version, t.body, t.created_at, t.updated_at, t.number, t.pruned_through"
)


def encode_events(events: Sequence[Event]) -> str:
    return written([_without_message(event) for event in events]).decode()


def _without_message(event: Event) -> dict[str, object]:
    said = said_by(event)
    if event.type in _MESSAGE_FIELD:
        said.pop(_MESSAGE_FIELD[event.type], None)
    return said


def positions_in(encoded: str) -> set[int]:
    """The positions whose messages `decode_events` needs."""
    positions = (
        event.get("position") for event in orjson.loads(encoded) if event["type"] in _MESSAGE_FIELD
    )
    return {position for position in positions if position is not None}


def decode_events(encoded: str, messages: Mapping[int, Message]) -> tuple[Event, ...]:
    """The events of one journal row, their messages put back from `messages` by position."""
    raw: list[dict[str, Any]] = orjson.loads(encoded)
    for event in raw:
        field = _MESSAGE_FIELD.get(event["type"])
        if field is not None:
            position = event.get("position")  # an early MODEL_STOPPED has none
            event[field] = None if position is None else messages[position]
    return _EVENTS.validate_python(raw)


def encode_failure(failure: ModelFailure) -> str:
    return written(failure).decode()


def decode_failure(body: str) -> ModelFailure:
    return _FAILURE.validate_json(body)
