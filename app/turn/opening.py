"""How a call comes to wait for somebody: what its wait holds, and the event that opens it.

A wait is made from the agent as it is when it is asked for, and nothing about it changes later.
"""

from dataclasses import replace
from datetime import datetime

from app.turn import events as e
from app.turn.agent import Agent, ToolSpec, WaitPolicy
from app.turn.open_calls import OpenCall
from app.turn.state import Turn
from app.turn.waits import (
    WAITING,
    ApprovalNeeded,
    ApprovalStage,
    ApprovalWait,
    ExternalWait,
    FormWait,
    InputNeeded,
    Wait,
    fingerprint_of,
)

_LONGEST_RESULT = 64 * 1024


def wait_for(
    call: OpenCall, needed: ApprovalNeeded | InputNeeded, agent: Agent, *, stage: ApprovalStage
) -> ApprovalWait | FormWait:
    """What a call waits for, not open yet: before its tool is entered, or because the tool asks."""
    policy = _policy(agent.tool(call.tool_name), agent)
    match needed:
        case ApprovalNeeded():
            return ApprovalWait(
                stage=stage,
                content=needed.content,
                fingerprint=needed.fingerprint,
                message=needed.message,
                excludes_requester=not agent.requester_may_approve,
                policy=policy,
            )
        case InputNeeded():
            return FormWait(
                asked_by="model" if stage == "policy" else "tool",
                form_key=needed.form_key,
                schema=needed.schema,
                message=needed.message,
                title=needed.title,
                strict=agent.strict_forms,
                policy=policy,
            )


def parked(call: OpenCall, arguments: str, agent: Agent) -> ApprovalWait:
    """What a call waits for whose last attempt has an end that nobody knows; not open yet.

    Its fingerprint is of that attempt: a card of an earlier one lets no later one run again.
    """
    spec = agent.tool(call.tool_name)
    return ApprovalWait(
        stage="recovery",
        content=arguments,
        fingerprint=fingerprint_of(call.tool_name, f"{call.attempt}\n{arguments}"),
        attempt=call.attempt,
        max_result_bytes=_LONGEST_RESULT if spec is None else spec.max_result_bytes,
        excludes_requester=not agent.requester_may_approve,
        policy=_policy(spec, agent),
    )


def wait_outside(spec: ToolSpec, arguments: str, agent: Agent) -> ExternalWait:
    """What a call of an outside tool waits for; not open yet."""
    return ExternalWait(
        arguments=arguments,
        max_result_bytes=spec.max_result_bytes,
        on_oversize=spec.on_oversize,
        policy=_policy(spec, agent),
    )


def opened(call: OpenCall, wait: Wait, *, at: datetime) -> e.Event:
    """From now on somebody may answer it, and its time runs."""
    match replace(wait, requested_at=at):
        case ApprovalWait() as open_wait:
            return e.ToolApprovalRequested(
                call_id=call.call_id, tool_name=call.tool_name, wait=open_wait
            )
        case FormWait() as open_wait:
            return e.ToolInputRequested(
                call_id=call.call_id, tool_name=call.tool_name, wait=open_wait
            )
        case ExternalWait() as open_wait:
            return e.ExternalToolRequested(
                call_id=call.call_id, tool_name=call.tool_name, wait=open_wait
            )


def suspended(turn: Turn, *, at: datetime) -> tuple[e.TurnSuspended, ...]:
    """The turn waits for what its first open wait waits for; none is open: no event."""
    return tuple(
        e.TurnSuspended(
            suspension_type=WAITING[call.wait.kind][0],
            record=None,
            requested_at=at,
            next_runnable_at=None,
            call_id=call.call_id,
            policy=call.wait.policy,
        )
        for call in turn.waiting_calls[:1]
        if call.wait is not None
    )


def _policy(spec: ToolSpec | None, agent: Agent) -> WaitPolicy:
    return agent.wait if spec is None or spec.wait is None else spec.wait
