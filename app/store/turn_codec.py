"""Turns and events as the store keeps them.

A turn's row has columns for what is searched and a JSON body for the rest. An event that adds a
message keeps only its position: the message stands once, in the transcript, and is put back when
the journal is read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar

import orjson
import structlog
from pydantic import Field, TypeAdapter, ValidationError

from app.ports import TurnNotReadable
from app.store.pool import Row
from app.turn.counters import Counters
from app.turn.events import Event
from app.turn.failures import ModelFailure
from app.turn.state import Turn
from app.turn.transcript import Message, Usage

Made = TypeVar("Made")

_log = structlog.get_logger(__name__)

_TURN = TypeAdapter(Turn)
_EVENTS: TypeAdapter[tuple[Event, ...]] = TypeAdapter(
    tuple[Annotated[Event, Field(discriminator="type")], ...]
)
_FAILURE = TypeAdapter(ModelFailure)
_ELSEWHERE = {"identity": True, "version": True, "created_at": True}
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
    left_out = _as_ever(turn, _TURN_DEFAULTS) | _ELSEWHERE
    for name, defaults in _NESTED_DEFAULTS.items():
        if name not in left_out:
            left_out[name] = _as_ever(getattr(turn, name), defaults)
    return _TURN.dump_json(turn, exclude=left_out).decode()


def _as_ever(value: object, defaults: Mapping[str, object]) -> dict[str, Any]:
    """The fields that hold their defaults, in the form in which they are excluded."""
    return {name: True for name, held in defaults.items() if getattr(value, name) == held}


def _defaults(kind: type[Any]) -> Mapping[str, object]:
    return {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(kind)
        if field.default is not MISSING or field.default_factory is not MISSING
    }


_TURN_DEFAULTS = _defaults(Turn)
_NESTED_DEFAULTS = {"counters": _defaults(Counters), "usage": _defaults(Usage)}


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
    return _EVENTS.dump_json(tuple(events), exclude={"__all__": {"message", "result"}}).decode()


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
    return _FAILURE.dump_json(failure).decode()


def decode_failure(body: str) -> ModelFailure:
    return _FAILURE.validate_json(body)
