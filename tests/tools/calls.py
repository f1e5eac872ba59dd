"""Calls of tools, as the runner would make them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from app.ports import FrozenForm, ToolContext, ToolOutput
from app.ports.suspensions import canonical_json
from app.turn.ids import ActorId, CallId, TurnId
from app.turn.transcript import Outcome
from app.turn.waits import Approval, ApprovalStage, fingerprint_of


def a_context(
    *,
    attempt: int = 1,
    is_replay: bool = False,
    tool_name: str = "pay",
    approvals: tuple[Approval, ...] = (),
    submissions: tuple[Mapping[str, Any], ...] = (),
    forms: Sequence[FrozenForm] = (),
) -> ToolContext:
    return ToolContext(
        turn_id=TurnId("turn_1"),
        call_id=CallId("call_1"),
        idempotency_key="turn_1:call_1",
        attempt=attempt,
        is_replay=is_replay,
        tool_name=tool_name,
        approvals=approvals,
        submissions=submissions,
        forms={form.key: form for form in forms},
    )


def approved(content: object, *, tool_name: str = "pay", stage: ApprovalStage = "tool") -> Approval:
    """A person's yes to that content."""
    return Approval(
        stage=stage,
        fingerprint=fingerprint_of(tool_name, canonical_json(content)),
        actor_id=ActorId("finance"),
        at=datetime(2026, 8, 1, tzinfo=UTC),
    )


def completed(content: str) -> ToolOutput:
    return ToolOutput(outcome=Outcome.COMPLETED, content=content)


def error(content: str) -> ToolOutput:
    return ToolOutput(outcome=Outcome.ERROR, content=content)


def not_started(content: str) -> ToolOutput:
    return ToolOutput(outcome=Outcome.NOT_STARTED, content=content)
