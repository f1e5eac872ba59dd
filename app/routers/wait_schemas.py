"""What a turn waits for, as callers see it: all that whoever answers has to know."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import orjson
from pydantic import Field

from app.ports import WaitedFor, WaitKind, waited_for
from app.routers.failure_schemas import FullFailure, SafeFailure, failure_output, millis
from app.routers.reader import Reader
from app.routers.wire import Output
from app.turn.agent import OnExpiry, WaitPolicy
from app.turn.ids import TurnId
from app.turn.open_calls import OpenCall
from app.turn.state import Turn
from app.turn.states import State, WaitingForUser
from app.turn.waits import ApprovalStage, ApprovalWait, ExternalWait, FormWait


class WaitOutput(Output):
    """One thing that a turn waits for; what this kind of wait does not have is null."""

    suspension_type: WaitKind
    correlation_id: str | None
    """The failureId, or the callId; null when the turn waits for something else."""
    requested_at: datetime
    timeout_millis: int | None
    """How long an answer may take, from `requestedAt` on; null: as long as it takes."""
    expires_at: datetime | None
    on_expiry: OnExpiry | None
    """What the end of that time does: `keep` (late answers are refused), `answer_expired` (the
    call gets a result that says so), `fail` or `cancel`."""
    is_expired: bool = False
    """Whether the time is over and the wait is kept."""
    next_runnable_at: datetime | None = None
    question: str | None = None
    """What the user is asked; of no call."""
    model_failure: SafeFailure | FullFailure | None = None
    call_id: str | None = None
    tool_name: str | None = None
    arguments: str | None = None
    """Exactly as stored: what an approval is for, or what an outside tool is to do."""
    stage: ApprovalStage | None = None
    fingerprint: str | None = None
    """Of what is to be approved; sent back, so that no other request is."""
    attempt: int | None = None
    """Of the stage `recovery`: the attempt that was begun and whose end nobody knows."""
    excludes_requester: bool | None = None
    """Whether the conversation's owner may reject the call, and not approve it."""
    message: str | None = None
    """Why it is asked, in the words of whoever asks."""
    title: str | None = None
    form_key: str | None = None
    form_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """The JSON Schema that `data` must fit; null where any text is an answer."""
    asked_by: Literal["model", "tool"] | None = None
    max_result_bytes: int | None = None
    """Of a result that somebody says, in UTF-8."""
    idempotency_key: str | None = None
    """Of the call: the same over all its attempts, and however often an outside tool is told."""


def wait_outputs(turn: Turn, reader: Reader) -> list[WaitOutput]:
    """Everything that the turn waits for, being paused included; the first of it first."""
    return [_wait(turn, waited, reader) for waited in waited_for(turn)]


def suspension_of(turn: Turn, waits: Sequence[WaitOutput]) -> WaitOutput | None:
    """What the turn itself waits for; at work or paused it may still have calls that wait."""
    return waits[0] if waits and turn.suspension_type is not None else None


def idempotency_key(turn_id: TurnId, call_id: str) -> str:
    """The key under which a call is done once: a call's id is unique in its turn only."""
    return f"{turn_id}:{call_id}"


def _wait(turn: Turn, waited: WaitedFor, reader: Reader) -> WaitOutput:
    if waited.call is not None:
        return WaitOutput(**_of_call(turn, waited, waited.call))
    failure = turn.current_failure
    return WaitOutput(
        suspension_type=waited.kind,
        correlation_id=failure and failure.failure_id,
        requested_at=waited.requested_at,
        next_runnable_at=turn.due_at,
        model_failure=failure and failure_output(failure, reader),
        **_of_question(turn.state),
    )


def _of_question(state: State) -> dict[str, Any]:
    if not isinstance(state, WaitingForUser):
        return _FOR_EVER
    asked = {"question": state.question, "is_expired": state.is_expired}
    return asked | _time(state.policy, state.requested_at)


def _of_call(turn: Turn, waited: WaitedFor, call: OpenCall) -> dict[str, Any]:
    wait = call.wait
    if wait is None:
        raise TypeError(call.call_id)
    known = {
        "suspension_type": waited.kind,
        "correlation_id": call.call_id,
        "requested_at": waited.requested_at,
        "call_id": call.call_id,
        "tool_name": call.tool_name,
        "is_expired": wait.is_expired,
        **_time(wait.policy, waited.requested_at),
    }
    match wait:
        case ApprovalWait(content=content, stage=stage, fingerprint=fingerprint):
            asked = {
                "arguments": content,
                "stage": stage,
                "fingerprint": fingerprint,
                "excludes_requester": wait.excludes_requester,
            }
            return known | asked | {"message": wait.message} | _of_attempt(turn, call, wait)
        case FormWait(title=title, form_key=form_key, schema=schema):
            form = {"title": title, "form_key": form_key, "asked_by": wait.asked_by}
            frozen = None if schema is None else orjson.loads(schema)
            return known | form | {"schema": frozen, "message": wait.message}
        case ExternalWait(arguments=arguments, max_result_bytes=most):
            key = idempotency_key(turn.identity.turn_id, call.call_id)
            errand = {"arguments": arguments, "max_result_bytes": most, "idempotency_key": key}
            return known | errand


def _of_attempt(turn: Turn, call: OpenCall, wait: ApprovalWait) -> dict[str, Any]:
    """What is known of an attempt whose end is not: enough to look it up where it was made."""
    if wait.attempt is None:
        return {}
    return {
        "attempt": wait.attempt,
        "max_result_bytes": wait.max_result_bytes,
        "idempotency_key": idempotency_key(turn.identity.turn_id, call.call_id),
    }


_FOR_EVER: dict[str, Any] = {"timeout_millis": None, "expires_at": None, "on_expiry": None}


def _time(policy: WaitPolicy, since: datetime) -> dict[str, Any]:
    if policy.timeout is None:
        return _FOR_EVER
    return {
        "timeout_millis": millis(policy.timeout),
        "expires_at": since + policy.timeout,
        "on_expiry": policy.on_expiry,
    }
