"""Turns whose calls wait for somebody, for the tests of the store: told as events."""

from dataclasses import replace
from datetime import datetime, timedelta

from app.ports import Commit
from app.turn import events as e
from app.turn.agent import Effect, OnExpiry, WaitPolicy
from app.turn.evolve import advance
from app.turn.ids import ActorId, AttemptId, CallId
from app.turn.state import Turn
from app.turn.status import Cursor, SuspensionType
from app.turn.transcript import AssistantMessage, Outcome, StopReason, ToolCall, ToolResult, Usage
from app.turn.waits import ApprovalWait, ExternalWait, FormWait, Wait
from tests.store.stored import Stored, begin
from tests.support.turns import NOON

ARGUMENTS = '{"amount": 20000, "to": "B\\u0000b"}'


def an_approval(*, since: datetime = NOON, policy: WaitPolicy | None = None) -> ApprovalWait:
    return ApprovalWait(
        stage="policy",
        content=ARGUMENTS,
        fingerprint="f" * 64,
        message="It is a lot of money.",
        policy=policy or WaitPolicy(),
        requested_at=since,
    )


def a_form(*, since: datetime = NOON, policy: WaitPolicy | None = None) -> FormWait:
    return FormWait(
        asked_by="tool",
        form_key="address",
        schema='{"type":"object"}',
        policy=policy or WaitPolicy(),
        requested_at=since,
    )


def an_errand(*, since: datetime = NOON, policy: WaitPolicy | None = None) -> ExternalWait:
    return ExternalWait(
        arguments=ARGUMENTS,
        max_result_bytes=1_000,
        policy=policy or WaitPolicy(),
        requested_at=since,
    )


def within(seconds: float, on_expiry: OnExpiry = "keep") -> WaitPolicy:
    return WaitPolicy(timeout=timedelta(seconds=seconds), on_expiry=on_expiry)


_SUSPENSIONS: dict[str, SuspensionType] = {
    "approval": "TOOL_APPROVAL",
    "form": "USER_INPUT",
    "external": "EXTERNAL_TOOL",
}


async def a_waiting_turn(stored: Stored, *waits: Wait, turn_id: str = "t1") -> Turn:
    """A turn in a conversation of its own, `c-` and its id, whose calls `A`, `B`, ... wait so."""
    turn = await stored.a_turn(turn_id, f"c-{turn_id}", message_id=f"m-{turn_id}")
    turn = await stored.tell(turn, begin())
    return await happened(stored, turn, *_asked(turn, waits))


async def happened(stored: Stored, turn: Turn, *events: e.Event) -> Turn:
    """The turn once these events are stored."""
    after = advance(turn, events)
    await stored.turns.append(Commit(before=turn, after=after, events=events, at=NOON))
    return after


def _asked(turn: Turn, waits: tuple[Wait, ...]) -> tuple[e.Event, ...]:
    calls = [(CallId(chr(ord("A") + n)), f"tool_{wait.kind}", wait) for n, wait in enumerate(waits)]
    position = turn.next_position
    answer = e.ModelCompleted(
        attempt_id=AttemptId("a1"),
        stop_reason=StopReason.TOOL_USE,
        usage=Usage(),
        remaining_iterations=99,
        position=position,
        message=AssistantMessage(
            text="",
            tool_calls=tuple(
                ToolCall(call_id=call_id, tool_name=name, arguments=ARGUMENTS)
                for call_id, name, _ in calls
            ),
            stop_reason=StopReason.TOOL_USE,
        ),
    )
    requested = [
        e.ToolRequested(
            call_id=call_id, tool_name=name, effect=Effect.WRITES, position=position + 1 + n
        )
        for n, (call_id, name, _) in enumerate(calls)
    ]
    first = calls[0]
    return (
        answer,
        *requested,
        e.StepCompleted(step=1),
        e.StepStarted(step=2, cursor=Cursor.PROCESS_TOOLS),
        *(_request(call_id, name, wait) for call_id, name, wait in calls),
        e.StepCompleted(step=2),
        e.TurnSuspended(
            suspension_type=_SUSPENSIONS[first[2].kind],
            record=None,
            requested_at=first[2].requested_at or NOON,
            next_runnable_at=None,
            call_id=first[0],
        ),
    )


def _request(call_id: CallId, name: str, wait: Wait) -> e.Event:
    match wait:
        case ApprovalWait():
            return e.ToolApprovalRequested(call_id=call_id, tool_name=name, wait=wait)
        case FormWait():
            return e.ToolInputRequested(call_id=call_id, tool_name=name, wait=wait)
        case ExternalWait():
            return e.ExternalToolRequested(call_id=call_id, tool_name=name, wait=wait)


def approved(turn: Turn, *, is_approved: bool = True) -> tuple[e.Event, ...]:
    """Somebody has said yes or no to the first call that waits."""
    call = turn.waiting_calls[0]
    assert isinstance(call.wait, ApprovalWait)
    decided = e.ToolApprovalDecided(
        call_id=call.call_id,
        tool_name=call.tool_name,
        stage=call.wait.stage,
        fingerprint=call.wait.fingerprint,
        is_approved=is_approved,
        actor_id=ActorId("amy"),
        at=NOON + timedelta(hours=1),
        reason=None if is_approved else "too\0dear",
    )
    resumed = e.TurnResumed(command_type="APPROVE_TOOL", waited=timedelta(hours=1))
    return decided, resumed


def returned(turn: Turn, call_id: str, outcome: Outcome) -> tuple[e.Event, ...]:
    """A call that was outside has come back so."""
    call = next(call for call in turn.open_calls if call.call_id == call_id)
    result = ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=outcome, content="said"
    )
    match outcome:
        case Outcome.COMPLETED:
            event: e.Event = e.ExternalToolCompleted(position=call.position, result=result)
        case Outcome.ERROR:
            event = e.ExternalToolFailed(position=call.position, result=result, code="gone")
        case _:
            event = e.ToolInterrupted(position=call.position, result=result)
    return event, e.TurnResumed(command_type="TOOL_RESULT", waited=timedelta(hours=1))


def put_aside(wait: Wait) -> Wait:
    """The same, not open."""
    return replace(wait, requested_at=None)
