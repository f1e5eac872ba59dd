"""Events as readers of a stream get them: one envelope, camelCase data, failures redacted."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import orjson
from pydantic.alias_generators import to_camel

from app.http.sse import StreamEvent
from app.routers.failure_schemas import failure_output
from app.routers.message_schemas import content_output, queued_output
from app.routers.sentences import Language
from app.routers.wait_event_schemas import policy_data, wait_event_data
from app.services.follow import Followed
from app.services.principal import Principal
from app.turn import events as e
from app.turn.ids import Identity, TurnId
from app.turn.journal import Interruption
from app.turn.transcript import (
    AssistantMessage,
    ClosingMessage,
    NoticeMessage,
    QuestionMessage,
    ToolResult,
    Usage,
    UserMessage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """For whom events are written down."""

    principal: Principal
    language: Language


def stream_event(followed: Followed, identity: Identity, reader: Reader) -> StreamEvent:
    sequence = followed.cursor.version
    envelope = {
        "eventId": f"{identity.turn_id}:{followed.cursor}",
        "turnId": identity.turn_id,
        "conversationId": identity.conversation_id,
        "agentId": identity.agent_id,
        "agentVersion": identity.agent_version,
        "sequence": sequence,
        "type": followed.event.type,
        "occurredAt": followed.occurred_at,
        "data": event_data(followed.event, reader, identity.turn_id),
    }
    return StreamEvent(
        id=str(followed.cursor), type=followed.event.type, data=orjson.dumps(envelope).decode()
    )


def event_data(  # noqa: C901, PLR0912 - it only routes
    event: e.Event, reader: Reader, turn_id: TurnId
) -> Mapping[str, Any]:
    """The `data` of an event: what its value holds, named as on the wire."""
    match event:
        case e.TurnStarted(held=held, queue=queue):
            return {
                "held": held,
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
        case e.ToolCompleted() | e.ToolFailed() | e.ToolRejected() | e.ExternalToolCompleted():
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
            detail = event.detail if reader.principal.sees_provider_details else None
            return {"reason": event.reason} | ({"detail": detail} if detail else {})
        case e.TurnResumed():
            return {
                "commandType": event.command_type,
                "correlationId": event.correlation_id,
                "model": event.model,
            }
        case e.ModelStopped():
            return dict(_plain(event)) | {"usage": _usage(event.usage)}
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
        "usage": _usage(event.usage),
        "remainingIterations": event.remaining_iterations,
        "text": event.message.text if event.message else "",
        "toolCalls": _calls(event.message),
    }


def _calls(message: AssistantMessage | None) -> list[dict[str, str]]:
    return [
        {"callId": call.call_id, "toolName": call.tool_name, "arguments": call.arguments}
        for call in (message.tool_calls if message else ())
    ]


def _failure_data(event: e.ModelFailed | e.TurnSuspended, reader: Reader) -> dict[str, Any]:
    record = event.record
    failure = record and failure_output(record, reader.principal, reader.language)
    shown = {"modelFailure": failure and failure.model_dump(mode="json")}
    match event:
        case e.ModelFailed(attempt_id=attempt_id):
            return {"attemptId": attempt_id} | shown | {"usage": _usage(event.usage)}
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
        "calls": [{"callId": call.call_id, "rule": call.rule} for call in event.calls],
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


def _usage(usage: Usage) -> dict[str, int | None]:
    return {
        "inputTokens": usage.input_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
        "outputTokens": usage.output_tokens,
    }


def _plain(event: e.Event) -> dict[str, Any]:
    """Events whose data is exactly their fields."""
    return {
        to_camel(field.name): getattr(event, field.name)
        for field in fields(event)
        if field.name != "type"
    }
