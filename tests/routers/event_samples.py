"""One event of every type, as docs/events.md shows them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.turn import events as e
from app.turn.agent import Effect, WaitPolicy
from app.turn.failures import FailureRecord, FailureType, ModelFailure
from app.turn.ids import (
    ActorId,
    AgentId,
    AgentVersion,
    AttemptId,
    CallId,
    ConversationId,
    FailureId,
    Identity,
    MessageId,
    TenantId,
    TurnId,
)
from app.turn.queued_input import QueuedInput
from app.turn.status import Cursor, LimitName, PauseCause
from app.turn.transcript import (
    AssistantMessage,
    InterruptionReason,
    Outcome,
    StopReason,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from app.turn.waits import ApprovalWait, ExternalWait, FormWait

AT = datetime(2026, 3, 1, 9, 30, 12, 500_000, tzinfo=UTC)
ATTEMPT = AttemptId("step_7")
CALL = CallId("call_1")
IDENTITY = Identity(
    turn_id=TurnId("turn_1"),
    tenant_id=TenantId("default"),
    conversation_id=ConversationId("ses_demo"),
    agent_id=AgentId("assistant"),
    agent_version=AgentVersion("h-fab74fb1fb59"),
)
RECORD = FailureRecord(
    failure_id=FailureId("fail_1"),
    failure=ModelFailure(
        type=FailureType.RATE_LIMITED,
        message="Rate limit reached on requests per min. Please try again in 20s.",
        retryable=True,
        retry_after=timedelta(seconds=20),
        http_status=429,
        error_code="rate_limit_exceeded",
        error_type="requests",
        provider="openai",
        model="gpt-5.1",
    ),
    model_attempt=2,
    occurred_at=AT,
)


APPROVAL = ApprovalWait(
    stage="policy",
    content='{"order":"O-7","amount":20000}',
    fingerprint="b04b09bf2ab2dca4c4ef8a23bf6e7a0e3a1f3ae6e1b2f6f3a3bd0c9a2f8f5c11",
    message="More than 10,000.",
    policy=WaitPolicy(timeout=timedelta(hours=1), on_expiry="keep"),
    requested_at=AT,
)


QUEUED = QueuedInput(
    message=UserMessage(message_id=MessageId("msg_2"), content=(TextPart(text="And of TP-4411?"),)),
    mode="queue",
    queued_at=AT,
)


def _result(outcome: Outcome, content: str) -> ToolResult:
    return ToolResult(call_id=CALL, tool_name="orders_search", outcome=outcome, content=content)


SAMPLES: tuple[e.Event, ...] = (
    e.TurnStarted(identity=IDENTITY, first_position=0, created_at=AT, queue=(QUEUED,)),
    e.MessageAdded(
        position=0,
        message=UserMessage(
            message_id=MessageId("msg_1"), content=(TextPart(text="How many of TP-4410 are left?"),)
        ),
    ),
    e.StepStarted(step=1, cursor=Cursor.INVOKE_MODEL),
    e.StepCompleted(step=1),
    e.StepRecovered(
        attempt_id=ATTEMPT,
        recovery="RECOVER_TOOLS",
        cause="crash",
        calls=(e.RecoveredCall(call_id=CALL, rule="rerun", probed="unknown"),),
    ),
    e.TurnSuspended(suspension_type="MODEL", record=RECORD, requested_at=AT, next_runnable_at=None),
    e.RetryWasScheduled(retry_count=1, due_at=AT + timedelta(seconds=20)),
    e.TurnResumed(
        command_type="RETRY_MODEL",
        waited=timedelta(minutes=5),
        correlation_id="fail_1",
        keep_turns=2,
        compact=True,
    ),
    e.CancellationRequested(),
    e.TurnCompleted(stop_reason=StopReason.END_TURN, position=3),
    e.TurnFailed(reason="request_refused", detail="Your request was rejected."),
    e.TurnCancelled(),
    e.MaxIterationsReached(used=100, allowed=100),
    e.MaxStepsReached(used=1_000, allowed=1_000),
    e.BudgetExceeded(reason=LimitName.TOTAL_TOKENS, used=200_410, allowed=200_000),
    e.PauseRequested(),
    e.TurnPaused(cause=PauseCause.PERSON, requested_at=AT),
    e.ModelStarted(attempt_id=ATTEMPT, model_attempt=1, remaining_iterations=100),
    e.ModelText(attempt_id=ATTEMPT, offset=17, text="the warehouse."),
    e.ModelReasoning(attempt_id=ATTEMPT, offset=0, text="The question is about TP-4410."),
    e.ModelCompleted(
        attempt_id=ATTEMPT,
        stop_reason=StopReason.TOOL_USE,
        usage=Usage(input_tokens=412, cached_input_tokens=0, output_tokens=38),
        remaining_iterations=99,
        position=1,
        message=AssistantMessage(
            text="I look it up.",
            tool_calls=(
                ToolCall(call_id=CALL, tool_name="orders_search", arguments='{"sku":"TP-4410"}'),
            ),
            stop_reason=StopReason.TOOL_USE,
        ),
    ),
    e.ModelFailed(attempt_id=ATTEMPT, record=RECORD, usage=Usage(input_tokens=412)),
    e.ModelStopped(
        attempt_id=ATTEMPT,
        stop_reason=StopReason.REFUSAL,
        raw_stop="content_filter",
        withheld_tools=("orders_search",),
    ),
    e.OutputReady(output='{"sku":"TP-4410","units":231}'),
    e.CompactionStarted(attempt_id=ATTEMPT, model_attempt=3),
    e.ContextCompacted(
        attempt_id=ATTEMPT,
        first=0,
        last=41,
        summary="They asked how many of TP-4410 are left.",
        replaced_tokens=9_120,
        summary_tokens=310,
        usage=Usage(input_tokens=6_100, output_tokens=290),
    ),
    e.CompactionFailed(attempt_id=ATTEMPT, reason="model_failed", detail="Overloaded"),
    e.ToolRequested(call_id=CALL, tool_name="orders_search", effect=Effect.READS, position=2),
    e.ToolStarted(call_id=CALL, attempt_id=ATTEMPT, attempt=1),
    e.ToolCompleted(position=2, result=_result(Outcome.COMPLETED, '{"orders": 3}')),
    e.ToolFailed(position=2, result=_result(Outcome.ERROR, "the search does not answer")),
    e.ToolAttemptFailed(
        call_id=CALL,
        tool_name="orders_search",
        attempt=1,
        error="the search does not answer",
        retry_at=AT + timedelta(seconds=1),
    ),
    e.ToolInterrupted(
        position=2,
        result=_result(Outcome.SUPERSEDED, "The call was given up."),
        reason=InterruptionReason.USER_MESSAGE,
        source_message_id=MessageId("msg_2"),
    ),
    e.ToolSkipped(
        position=2,
        result=_result(Outcome.SUPERSEDED, "a new message came first"),
        source_message_id=QUEUED.message.message_id,
    ),
    e.InputQueued(queued=QUEUED),
    e.InputPromoted(message_id=QUEUED.message.message_id),
    e.InputWithdrawn(message_id=QUEUED.message.message_id),
    e.ToolApprovalRequested(call_id=CALL, tool_name="refund", wait=APPROVAL),
    e.ToolInputRequested(
        call_id=CALL,
        tool_name="ship",
        wait=FormWait(
            asked_by="tool",
            form_key="address",
            schema='{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}',
            message="Where does it go?",
            title="Address",
            requested_at=AT,
        ),
    ),
    e.ExternalToolRequested(
        call_id=CALL,
        tool_name="scan_parcel",
        wait=ExternalWait(
            arguments='{"parcel":"P-7"}',
            max_result_bytes=65_536,
            policy=WaitPolicy(timeout=timedelta(hours=2), on_expiry="answer_expired"),
            requested_at=AT,
        ),
    ),
    e.ToolPutAside(call_id=CALL, wait=replace(APPROVAL, requested_at=None)),
    e.ToolApprovalDecided(
        call_id=CALL,
        tool_name="refund",
        stage=APPROVAL.stage,
        fingerprint=APPROVAL.fingerprint,
        is_approved=False,
        actor_id=ActorId("amy"),
        at=AT,
        reason="It was paid back before.",
    ),
    e.ToolInputReceived(call_id=CALL, data='{"city":"Tokyo"}'),
    e.ExternalToolCancelRequested(call_id=CALL, tool_name="scan_parcel"),
    e.WaitExpired(call_id=CALL, on_expiry="answer_expired"),
    e.ExternalToolCompleted(position=2, result=_result(Outcome.COMPLETED, '{"weight":3}')),
    e.ExternalToolFailed(
        position=2, result=_result(Outcome.ERROR, "There is no such parcel."), code="not_found"
    ),
    e.ToolRejected(
        position=2, result=_result(Outcome.REJECTED, "Rejected: it was paid back before.")
    ),
)
