"""What waits for somebody, what was decided, what came too late: as lists show it."""

from collections.abc import Sequence
from datetime import datetime

from app.ports import DecidedApproval, KeptLateResult, LateKind
from app.routers.turn_schemas import ActionOutput
from app.routers.wait_schemas import WaitOutput
from app.routers.wire import Output
from app.turn.status import Status
from app.turn.waits import ApprovalStage


class WaitItem(Output):
    """One thing that a turn waits for."""

    turn_id: str
    conversation_id: str
    agent_id: str
    status: Status
    title: str
    """Of the conversation."""
    wait: WaitOutput
    actions: list[ActionOutput]
    """What may be done about it now."""


class WaitPage(Output):
    items: list[WaitItem]
    next_cursor: str | None


class ApprovalOutput(Output):
    """What a person has said to a request for an approval."""

    call_id: str
    tool_name: str
    stage: ApprovalStage
    arguments: str
    """What was shown, exactly as stored."""
    fingerprint: str
    message: str | None
    """Why it was asked."""
    approved: bool
    actor_id: str
    reason: str | None
    """Why it was rejected."""
    requested_at: datetime
    decided_at: datetime


class ApprovalPage(Output):
    items: list[ApprovalOutput]
    next_cursor: str | None


class LateResultOutput(Output):
    """What somebody outside has said of a call that took no result any more."""

    call_id: str
    command: LateKind
    code: str | None
    """Of an error."""
    text: str
    """The result as the model would have read it, or the error's message."""
    is_cut: bool
    """Whether only its first 64 KiB are kept."""
    actor_id: str
    received_at: datetime


class LateResultPage(Output):
    items: list[LateResultOutput]
    next_cursor: str | None


def approval_outputs(found: Sequence[DecidedApproval]) -> list[ApprovalOutput]:
    return [
        ApprovalOutput(
            call_id=each.call_id,
            tool_name=each.tool_name,
            stage=each.stage,
            arguments=each.content,
            fingerprint=each.fingerprint,
            message=each.message,
            approved=each.is_approved,
            actor_id=each.actor_id,
            reason=each.reason,
            requested_at=each.requested_at,
            decided_at=each.decided_at,
        )
        for each in found
    ]


def late_result_outputs(found: Sequence[KeptLateResult]) -> list[LateResultOutput]:
    return [
        LateResultOutput(
            call_id=each.late.call_id,
            command=each.late.kind,
            code=each.late.code,
            text=each.late.body,
            is_cut=each.late.is_cut,
            actor_id=each.late.actor_id,
            received_at=each.received_at,
        )
        for each in found
    ]
