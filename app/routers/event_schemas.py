"""Events as readers of a stream get them: one envelope, camelCase data, failures redacted."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeAlias, get_args

import orjson
from pydantic.alias_generators import to_camel

from app.http.sse import frame
from app.routers.change_event_schemas import changes_data, compaction_data, usage_data
from app.routers.failure_schemas import failure_output
from app.routers.message_schemas import content_output, error_output, queued_output
from app.routers.reader import Reader
from app.routers.turn_schemas import TurnOutput
from app.routers.wait_event_schemas import policy_data, wait_event_data
from app.routers.wire import Output
from app.services.reading import Followed, Snapshot
from app.turn import events as e
from app.turn.failures import error_ref
from app.turn.ids import Identity, TurnId
from app.turn.journal import Interruption
from app.turn.transcript import (
    AssistantMessage,
    ClosingMessage,
    NoticeMessage,
    QuestionMessage,
    ToolResult,
    UserMessage,
)

Envelope: TypeAlias = dict[str, Any]
"""An event with what is said of every one: whose it is, which one, when."""


def envelope(followed: Followed, identity: Identity, data: Mapping[str, Any]) -> Envelope:
    return {
        "eventId": f"{identity.turn_id}:{followed.cursor}",
        "turnId": identity.turn_id,
        "conversationId": identity.conversation_id,
        "agentId": identity.agent_id,
        "agentVersion": identity.agent_version,
        "sequence": followed.cursor.version,
        "type": followed.event.type,
        "occurredAt": followed.occurred_at,
        "data": data,
    }


def snapshot_data(snapshot: Snapshot, turn: TurnOutput) -> dict[str, Any]:
    """What stands for events that are not kept any more."""
    return {
        "prunedThrough": snapshot.pruned_through,
        "turn": turn.model_dump(mode="json"),
    }


def framed(said: Envelope, place: str) -> bytes:
    """The event as a frame whose id is `place`."""
    return frame(place, said["type"], orjson.dumps(said))


def event_data(  # noqa: C901, PLR0912 - it only routes
    event: e.Event, reader: Reader, turn_id: TurnId
) -> Mapping[str, Any]:
    """The `data` of an event: what its value holds, named as on the wire."""
    match event:
        case e.TurnStarted(held=held, queue=queue):
            return {
                "held": held,
                "neverReplay": event.never_replay,
                "queue": [queued_output(queued) for queued in queue],
                "resumesTurnId": event.resumes_turn_id,
                "model": event.model,
            }
        case e.InputQueued(queued=queued):
            return queued_output(queued)
        case e.MessageAdded():
            return _added(event)
        case e.ModelCompleted():
            return _answered(event)
        case e.ModelFailed() | e.TurnSuspended():
            return _failure_data(event, reader)
        case e.ToolAttemptFailed():
            return _attempt_failed(event)
        case e.ToolCompleted(known_by=known_by):
            return {"position": event.position} | _result(event.result) | {"knownBy": known_by}
        case e.ToolFailed() | e.ToolRejected() | e.ExternalToolCompleted():
            return {"position": event.position} | _result(event.result)
        case e.ExternalToolFailed():
            return {"position": event.position} | _result(event.result) | {"code": event.code}
        case (
            e.ToolApprovalRequested()
            | e.ToolInputRequested()
            | e.ExternalToolRequested()
            | e.ToolPutAside()
            | e.ToolApprovalDecided()
            | e.ToolInputReceived()
            | e.ExternalToolCancelRequested()
            | e.WaitExpired()
        ):
            return wait_event_data(event, turn_id)
        case e.ToolInterrupted() | e.ToolSkipped():
            return _interrupted(event)
        case e.StepRecovered():
            return _recovered(event)
        case e.TurnFailed():
            told = {"detail": event.detail, "errorRef": error_ref(turn_id)}
            is_told = bool(event.detail) and reader.principal.sees_provider_details
            return {"reason": event.reason} | (told if is_told else {})
        case e.TurnResumed():
            return {
                "commandType": event.command_type,
                "correlationId": event.correlation_id,
                "model": event.model,
                "changes": changes_data(event),
            }
        case e.ContextCompacted() | e.CompactionFailed():
            return compaction_data(event, is_operator=reader.principal.sees_provider_details)
        case e.ModelStopped():
            return _stopped(event, reader)
        case e.OutputReady(output=output):
            return {"output": orjson.loads(output)}
        case e.RetryWasScheduled(retry_count=count, due_at=due_at):
            return {"retryCount": count, "nextRunnableAt": due_at}
        case _:
            return _plain(event)


def _added(event: e.MessageAdded) -> dict[str, Any]:
    position = event.position
    match event.message:
        case UserMessage(message_id=message_id, content=content):
            return {
                "position": position,
                "role": "user",
                "messageId": message_id,
                "content": content_output(content),
            }
        case ClosingMessage(text=text) | NoticeMessage(text=text) | QuestionMessage(text=text):
            return {"position": position, "role": event.message.role, "content": text}


def _answered(event: e.ModelCompleted) -> dict[str, Any]:
    return {
        "attemptId": event.attempt_id,
        "position": event.position,
        "stopReason": event.stop_reason,
        "usage": usage_data(event.usage),
        "remainingIterations": event.remaining_iterations,
        "text": event.message.text if event.message else "",
        "toolCalls": _calls(event.message),
    }


_STOP_NAME = re.compile(r"(?=.{1,64}$)[A-Za-z]+(?:[_-][A-Za-z]+)*")


def _stopped(event: e.ModelStopped, reader: Reader) -> dict[str, Any]:
    """What a gateway has put in place of a stop value may be any words: those are for operators."""
    message = event.message
    is_shown = reader.principal.sees_provider_details or _STOP_NAME.fullmatch(event.raw_stop or "")
    error = message and message.error and error_output(message.error)
    return {
        "attemptId": event.attempt_id,
        "stopReason": event.stop_reason,
        "rawStop": event.raw_stop if is_shown else None,
        "withheldTools": event.withheld_tools,
        "usage": usage_data(event.usage),
        "position": event.position,
        "text": message.text if message else None,
        "error": error and error.model_dump(mode="json"),
    }


def _calls(message: AssistantMessage | None) -> list[dict[str, str]]:
    return [
        {"callId": call.call_id, "toolName": call.tool_name, "arguments": call.arguments}
        for call in (message.tool_calls if message else ())
    ]


def _failure_data(event: e.ModelFailed | e.TurnSuspended, reader: Reader) -> dict[str, Any]:
    record = event.record
    failure = record and failure_output(record, reader)
    shown = {"modelFailure": failure and failure.model_dump(mode="json")}
    match event:
        case e.ModelFailed(attempt_id=attempt_id):
            then = {"then": event.then, "usage": usage_data(event.usage)}
            return {"attemptId": attempt_id} | shown | then
        case e.TurnSuspended(suspension_type=kind, requested_at=requested_at):
            return {
                "suspensionType": kind,
                "correlationId": record.failure_id if record else event.call_id,
                "requestedAt": requested_at,
                **policy_data(event.policy),
                "nextRunnableAt": event.next_runnable_at,
                "question": event.question,
            } | shown


def _recovered(event: e.StepRecovered) -> dict[str, Any]:
    return {
        "kind": event.recovery,
        "attemptId": event.attempt_id,
        "discardFrom": event.discard_from,
        "cause": event.cause,
        "calls": [
            {"callId": call.call_id, "rule": call.rule, "probed": call.probed}
            for call in event.calls
        ],
    }


def _attempt_failed(event: e.ToolAttemptFailed) -> dict[str, Any]:
    return {
        "callId": event.call_id,
        "toolName": event.tool_name,
        "attempt": event.attempt,
        "error": event.error,
        "nextRunnableAt": event.retry_at,
    }


def _interrupted(event: Interruption) -> dict[str, Any]:
    why = {"reason": event.reason, "sourceMessageId": event.source_message_id}
    return {"position": event.position} | _result(event.result) | why


def _result(result: ToolResult) -> dict[str, Any]:
    return {
        "callId": result.call_id,
        "toolName": result.tool_name,
        "outcome": result.outcome,
        "output": result.content,
    }


def _plain(event: e.Event) -> dict[str, Any]:
    """Events whose data is exactly their fields."""
    return {named: getattr(event, name) for name, named in _NAMES[type(event)]}


_NAMES: Mapping[type, Sequence[tuple[str, str]]] = {
    kind: tuple((f.name, to_camel(f.name)) for f in fields(kind) if f.name != "type")
    for kind in get_args(e.Event)
}
"""The fields of each kind of event, here and on the wire."""


class EventOutput(Output):
    """An event of a turn; docs/events.md has the types and what their `data` holds."""

    event_id: str
    turn_id: str
    conversation_id: str
    agent_id: str
    agent_version: str
    sequence: int
    type: str
    occurred_at: datetime
    data: dict[str, Any]


class EventPage(Output):
    items: list[EventOutput]
    next_cursor: str | None
    """Where the next page begins; null when this is all there is now."""
    last_event_id: str | None
    """The place behind this page, for `after` of a later look; null when it is empty."""
