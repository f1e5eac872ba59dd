"""The turn resource."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson
from pydantic import Field

from app.http.languages import Language
from app.http.problems import action_json
from app.ports import StoredTurn
from app.routers.failure_schemas import millis
from app.routers.message_schemas import QueuedOutput, queued_output
from app.routers.reader import Reader
from app.routers.sentences import sentence_for
from app.routers.wait_schemas import WaitOutput, suspension_of, wait_outputs
from app.routers.wire import Output, is_absent
from app.turn.actions import Action
from app.turn.retry_advice import Remedy
from app.turn.state import Turn
from app.turn.states import Completed, Paused
from app.turn.status import Cursor, LimitName, PauseCause, Status
from app.turn.stopping import StopCause, stopped_by
from app.turn.transcript import StopReason


class ActionOutput(Output):
    """What may be done now, or why it may not."""

    command: str
    enabled: bool
    failure_id: str | None = Field(default=None, exclude_if=is_absent)
    call_id: str | None = Field(default=None, exclude_if=is_absent)
    reason: str | None = Field(default=None, exclude_if=is_absent)
    """Why it would be refused; of an enabled one, why it may not help."""
    message: str | None = Field(default=None, exclude_if=is_absent)
    """Why it may not help, in the caller's language."""
    helps: list[Remedy] | None = Field(default=None, exclude_if=is_absent)
    """What would help instead, or first."""
    helps_from: datetime | None = Field(default=None, exclude_if=is_absent)
    """From when on it helps, as the provider has stated it; never a guess."""
    changes: list[str] | None = Field(default=None, exclude_if=is_absent)
    """What the caller may change with it, by the names in its `changes`."""
    models: list[str] | None = Field(default=None, exclude_if=is_absent)
    """Models that may be named in place of the one that is asked now. Where `changes` has `model`
    and the agent does not say which, any other may be named as well."""


class PauseOutput(Output):
    """Why the turn is paused, and since when."""

    cause: PauseCause
    limit: LimitName | None
    requested_at: datetime


class UsageOutput(Output):
    """Tokens over the whole turn; null where no provider said."""

    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None


class CountersOutput(Output):
    steps: int
    model_attempts: int
    model_successes: int
    model_failures: int
    retries: int
    consecutive_retries: int
    tool_calls: int


class TurnOutput(Output):
    """One task of an agent, from a user's message to a terminal state."""

    turn_id: str
    conversation_id: str
    agent_id: str
    agent_version: str
    status: Status
    cursor: Cursor
    version: int
    suspension: WaitOutput | None
    """What the turn waits for; of several things the first."""
    waits: list[WaitOutput]
    """All of it; also what calls wait for while the turn is at work or paused."""
    pause: PauseOutput | None
    stopped_by: StopCause | None
    """Why the turn does not go on; at work: what its last step was lost to, until a step ends."""
    failure_id: str | None
    failure_type: str | None
    retry_after_millis: int | None
    retry_at: datetime | None
    message: str | None
    actions: list[ActionOutput]
    cancel_requested: bool
    pause_requested: bool
    held: bool
    """Whether the turn is on hold: no worker takes it before it is told to run."""
    final_output: str | None
    """The last answer's text."""
    output: Any
    """The final answer's value, where the agent declares an output type; else null."""
    stop_reason: StopReason | None
    usage: UsageOutput
    counters: CountersOutput
    queue: list[QueuedOutput]
    """Messages that wait, in order; an ended turn has handed them on to the next one."""
    resumes_turn_id: str | None
    """The turn whose history this one goes on with, without a message of a user."""
    created_at: datetime
    updated_at: datetime


class PostedTurnOutput(TurnOutput):
    """The turn that took a message."""

    message_id: str
    events_url: str


class TurnPage(Output):
    items: list[TurnOutput]
    next_cursor: str | None


def action_outputs(actions: Sequence[Action], language: Language) -> list[ActionOutput]:
    return [ActionOutput.model_validate(action_json(action, language)) for action in actions]


def turn_output(
    stored: StoredTurn,
    *,
    final_output: str | None,
    reader: Reader,
    actions: Sequence[Action],
) -> TurnOutput:
    return TurnOutput(
        **_turn_fields(stored, reader=reader, actions=actions),
        final_output=final_output,
    )


def posted_turn_output(
    stored: StoredTurn,
    *,
    message_id: str,
    events_url: str,
    final_output: str | None,
    reader: Reader,
    actions: Sequence[Action],
) -> PostedTurnOutput:
    return PostedTurnOutput(
        **_turn_fields(stored, reader=reader, actions=actions),
        final_output=final_output,
        message_id=message_id,
        events_url=events_url,
    )


def _turn_fields(
    stored: StoredTurn, *, reader: Reader, actions: Sequence[Action]
) -> dict[str, Any]:
    turn = stored.turn
    waits = [w for w in wait_outputs(turn, reader) if w.suspension_type != "PAUSED"]
    failure = turn.current_failure
    return {
        "turn_id": turn.identity.turn_id,
        "conversation_id": turn.identity.conversation_id,
        "agent_id": turn.identity.agent_id,
        "agent_version": turn.identity.agent_version,
        "status": turn.status,
        "cursor": turn.cursor,
        "version": turn.version,
        "suspension": suspension_of(turn, waits),
        "waits": waits,
        "failure_id": failure and failure.failure_id,
        "failure_type": failure and failure.failure.type,
        "retry_after_millis": failure and millis(failure.failure.retry_after),
        "retry_at": turn.retry_at,
        "message": sentence_for(turn, reader.language),
        "actions": action_outputs(actions, reader.language),
        "pause": _pause(turn),
        "stopped_by": stopped_by(turn),
        "cancel_requested": turn.cancel_requested,
        "pause_requested": turn.pause_requested,
        "held": turn.is_held,
        "output": None if turn.output is None else orjson.loads(turn.output),
        "stop_reason": turn.state.stop_reason if isinstance(turn.state, Completed) else None,
        "usage": UsageOutput.model_validate(turn.usage, from_attributes=True),
        "counters": CountersOutput.model_validate(turn.counters, from_attributes=True),
        "queue": _queue(turn),
        "resumes_turn_id": turn.resumes_turn_id,
        "created_at": turn.created_at,
        "updated_at": stored.updated_at,
    }


def _queue(turn: Turn) -> list[QueuedOutput]:
    if turn.is_terminal:
        return []
    return [QueuedOutput.model_validate(queued_output(queued)) for queued in turn.queue]


def _pause(turn: Turn) -> PauseOutput | None:
    if not isinstance(turn.state, Paused):
        return None
    return PauseOutput.model_validate(turn.state, from_attributes=True)
