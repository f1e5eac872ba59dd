"""Commands on a turn that waits, as callers say them."""

import json
from datetime import timedelta
from typing import Annotated, Literal, Self, TypeAlias, TypeVar

from pydantic import Field, JsonValue, field_validator, model_validator

from app.routers.message_schemas import SaidBody
from app.routers.model_names import ModelName
from app.routers.wire import Input
from app.services.turns import LimitChange
from app.turn.changes import NO_CHANGES, Changes
from app.turn.ids import ActorId, CallId
from app.turn.inputs import ApproveTool, CallCommand, GiveToolError, GiveToolResult, RejectTool

FailureIdText = Annotated[
    str, Field(min_length=1, description="The failure the turn waits for now.")
]


WholeNumber = Annotated[int, Field(strict=True)]
_Said = TypeVar("_Said", bound=Input)


def _saying_something(said: _Said) -> _Said:
    """What is null, or false, is as it was: a page that sends no more than that has a fault."""
    if all(value is None or value is False for _, value in said):
        message = "say what is to be changed"
        raise ValueError(message)
    return said


class RetryBody(Input):
    """Takes a scheduled retry that is due."""

    command: Literal["RETRY"]


class ContinueBody(Input):
    """Takes a scheduled retry before it is due."""

    command: Literal["CONTINUE"]


class LimitChanges(Input):
    """Limits of the turn from now on; what is not named stays as it is."""

    max_iterations: WholeNumber | None = Field(default=None, ge=1, le=1_000_000)
    max_steps: WholeNumber | None = Field(default=None, ge=1, le=1_000_000)
    max_duration_seconds: Annotated[float, Field(strict=True)] | None = Field(
        default=None, gt=0, le=10**9
    )
    max_input_tokens: WholeNumber | None = Field(default=None, ge=1, le=10**12)
    max_output_tokens: WholeNumber | None = Field(default=None, ge=1, le=10**12)
    max_total_tokens: WholeNumber | None = Field(default=None, ge=1, le=10**12)
    max_tool_calls: WholeNumber | None = Field(default=None, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        return _saying_something(self)


class RetryChanges(Input):
    """What is to be otherwise for the rest of the turn; what is not named stays as it is.

    Who may change what is up to the turn's version of its agent. A change that cannot help with the
    failure is refused (`payload_invalid`).
    """

    model: ModelName | None = None
    max_output_tokens: WholeNumber | None = Field(
        default=None,
        ge=1,
        le=10**9,
        description="At most so many tokens in an answer; for token limits that its length has a "
        "part in (OUTPUT, TOTAL_CONTEXT, UNKNOWN).",
    )
    compact: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="The model first sums up what was said before the turn; for token limits that "
        "the history has a part in (INPUT_CONTEXT, TOTAL_CONTEXT, UNKNOWN), as `keepTurns` is.",
    )
    keep_turns: WholeNumber | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="How many turns before this one go into its requests as they are. What is "
        "older is left out, or with `compact` summed up.",
    )
    limits: LimitChanges | None = Field(default=None, description="For operators.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        return _saying_something(self)


class RetryModelBody(Input):
    """Sends the failed request again."""

    command: Literal["RETRY_MODEL"]
    failure_id: FailureIdText
    changes: RetryChanges | None = None


class FailureBody(Input):
    """`RETRY_MODEL` in short: a body that holds only the failureId."""

    failure_id: FailureIdText


class ResumeChanges(Input):
    limits: LimitChanges


class ResumeTurnBody(Input):
    """Goes on with a paused turn; an operator may change its limits."""

    command: Literal["RESUME"]
    changes: ResumeChanges | None = None


class UserInputBody(Input):
    """Answers what the user is asked."""

    command: Literal["USER_INPUT"]
    text: Annotated[str, Field(max_length=200_000)] | None = Field(
        default=None,
        description="The answer in words. To a plain question it becomes a message of the user's, "
        "to a question of the model's the result of its call.",
    )
    call_id: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The call that asks; needed where more than one does."
    )
    data: dict[str, JsonValue] | None = Field(
        default=None, description="What is filled into a form; it must fit the wait's `schema`."
    )


CallIdText = Annotated[str, Field(min_length=1, description="The call that waits.")]


class ApproveToolBody(Input):
    """Lets a call run that waits for an approval."""

    command: Literal["APPROVE_TOOL"]
    call_id: CallIdText
    fingerprint: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="Of the request you have seen, so that no other one is approved."
    )


class RejectToolBody(Input):
    """Gives a call up that waits for an approval; the model is told why."""

    command: Literal["REJECT_TOOL"]
    call_id: CallIdText
    reason: Annotated[str, Field(max_length=10_000)] = Field(
        default="", description="Why; the model reads it."
    )


class ToolResultBody(Input):
    """Says what was done for a call outside."""

    command: Literal["TOOL_RESULT"]
    call_id: CallIdText
    output: JsonValue = Field(
        description="Any JSON but null. The model reads a text as it is, all else as JSON; "
        "that is what `maxResultBytes` counts."
    )

    @field_validator("output")
    @classmethod
    def _says_something(cls, output: JsonValue) -> JsonValue:
        if output is None:
            message = "null says nothing"
            raise ValueError(message)
        return output


class ToolErrorBody(Input):
    """Says why a call could not be done outside; the model is told."""

    command: Literal["TOOL_ERROR"]
    call_id: CallIdText
    code: Annotated[str, Field(min_length=1, max_length=200)]
    message: Annotated[str, Field(min_length=1, max_length=10_000)]


CallBody: TypeAlias = ApproveToolBody | RejectToolBody | ToolResultBody | ToolErrorBody


class ReplanBody(Input):
    """Closes every open call and goes on with a new message."""

    command: Literal["REPLAN_WITH_MESSAGE"]
    message: SaidBody


def call_command(body: CallBody, actor_id: ActorId) -> CallCommand:
    """The command as the core takes it."""
    call_id = CallId(body.call_id)
    match body:
        case ApproveToolBody(fingerprint=fingerprint):
            return ApproveTool(call_id=call_id, actor_id=actor_id, fingerprint=fingerprint)
        case RejectToolBody(reason=reason):
            return RejectTool(call_id=call_id, actor_id=actor_id, reason=reason)
        case ToolResultBody(output=output):
            return GiveToolResult(call_id=call_id, output=_as_read(output))
        case ToolErrorBody(code=code, message=message):
            return GiveToolError(call_id=call_id, code=code, message=message)


def _as_read(output: JsonValue) -> str:
    """What a model reads of the result: a text as it is, anything else as JSON."""
    if isinstance(output, str):
        return output
    return json.dumps(output, ensure_ascii=False, separators=(",", ":"))


def changes_of(body: RetryModelBody) -> Changes:
    """The changes as the core takes them, without those of limits."""
    said = body.changes
    if said is None:
        return NO_CHANGES
    return Changes(
        model=said.model,
        max_output_tokens=said.max_output_tokens,
        compact=said.compact,
        keep_turns=said.keep_turns,
    )


def limit_change(body: RetryModelBody | ResumeTurnBody) -> LimitChange | None:
    """The changes of limits as the use case takes them; `None` when there are none."""
    if body.changes is None or body.changes.limits is None:
        return None
    given = body.changes.limits.model_dump(exclude_none=True)
    seconds = given.pop("max_duration_seconds", None)
    if seconds is not None:
        given["max_duration"] = timedelta(seconds=seconds)
    return given
