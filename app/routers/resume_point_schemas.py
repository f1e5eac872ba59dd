"""The resume point of a conversation."""

from collections.abc import Sequence

from pydantic import Field

from app.http.languages import Language
from app.routers.resume_sentences import sentence_of
from app.routers.turn_schemas import ActionOutput, action_outputs
from app.routers.wire import Output, is_absent
from app.services.resume_point import Found
from app.turn.actions import Action
from app.turn.resume_point import Kind, NotResumable, Reason, Resumable, Rule
from app.turn.status import Status
from app.turn.transcript import StopReason


class UnansweredCallOutput(Output):
    """A tool call without a result, and what becomes of it on a resume."""

    call_id: str
    tool_name: str
    rule: Rule


class ResumePointOutput(Output):
    """Where a conversation can be resumed, or why it cannot; fields without a value are absent."""

    resumable: bool
    kind: Kind | None = Field(default=None, exclude_if=is_absent)
    """What the resume does first."""
    reason: Reason | None = Field(default=None, exclude_if=is_absent)
    """Why there is nothing to resume."""
    description: str
    """A sentence for people."""
    unanswered_tool_calls: list[UnansweredCallOutput] | None = Field(
        default=None, exclude_if=is_absent
    )
    stop: StopReason | None = Field(default=None, exclude_if=is_absent)
    """How the last answer ended, where that decides."""
    turn_id: str | None = Field(default=None, exclude_if=is_absent)
    """The turn that goes on, or that a new one goes on from."""
    failure_id: str | None = Field(default=None, exclude_if=is_absent)
    """The failure that a resume has to name."""
    status: Status | None = Field(default=None, exclude_if=is_absent)
    """Of the turn that runs or waits."""
    actions: list[ActionOutput] | None = Field(default=None, exclude_if=is_absent)
    """What may be done about the turn that runs or waits."""


def resume_point_output(
    found: Found, actions: Sequence[Action], language: Language
) -> ResumePointOutput:
    turn = found.turn
    turn_id = None if turn is None else turn.identity.turn_id
    match found.point:
        case Resumable() as point:
            return ResumePointOutput(
                resumable=True,
                kind=point.kind,
                description=sentence_of(point, language),
                unanswered_tool_calls=[
                    UnansweredCallOutput.model_validate(call, from_attributes=True)
                    for call in point.unanswered
                ],
                stop=point.stop,
                turn_id=turn_id,
                failure_id=point.failure_id,
            )
        case NotResumable(reason="running" | "waiting" as reason) if turn is not None:
            return ResumePointOutput(
                resumable=False,
                reason=reason,
                description=sentence_of(found.point, language),
                turn_id=turn_id,
                status=turn.status,
                actions=action_outputs(actions, language),
            )
        case NotResumable(reason=reason, stop=stop):
            return ResumePointOutput(
                resumable=False,
                reason=reason,
                description=sentence_of(found.point, language),
                stop=stop,
                turn_id=turn_id,
            )
