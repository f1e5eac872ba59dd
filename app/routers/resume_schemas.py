"""Commands on a turn that waits, as callers say them."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from app.routers.message_schemas import SaidBody
from app.routers.wire import Input
from app.services.turns import LimitChange

FailureIdText = Annotated[
    str, Field(min_length=1, description="The failure the turn waits for now.")
]


class RetryModelBody(Input):
    """Sends the failed request again."""

    command: Literal["RETRY_MODEL"]
    failure_id: FailureIdText


class FailureBody(Input):
    """`RETRY_MODEL` in short: a body that holds only the failureId."""

    failure_id: FailureIdText


class RetryBody(Input):
    """Takes a scheduled retry that is due."""

    command: Literal["RETRY"]


class ContinueBody(Input):
    """Takes a scheduled retry before it is due."""

    command: Literal["CONTINUE"]


class LimitChanges(Input):
    """Limits of the turn from now on; what is not named stays as it is."""

    max_iterations: int | None = Field(default=None, ge=1, le=1_000_000)
    max_steps: int | None = Field(default=None, ge=1, le=1_000_000)
    max_duration_seconds: float | None = Field(default=None, gt=0, le=10**9)
    max_input_tokens: int | None = Field(default=None, ge=1, le=10**12)
    max_output_tokens: int | None = Field(default=None, ge=1, le=10**12)
    max_total_tokens: int | None = Field(default=None, ge=1, le=10**12)
    max_tool_calls: int | None = Field(default=None, ge=1, le=1_000_000)


class ChangesBody(Input):
    limits: LimitChanges


class ResumeTurnBody(Input):
    """Goes on with a paused turn; an operator may change its limits."""

    command: Literal["RESUME"]
    changes: ChangesBody | None = None


class ReplanBody(Input):
    """Closes every open call and goes on with a new message."""

    command: Literal["REPLAN_WITH_MESSAGE"]
    message: SaidBody


def limit_change(body: ResumeTurnBody) -> LimitChange | None:
    """The changes as the use case takes them; `None` when there are none."""
    if body.changes is None:
        return None
    given = body.changes.limits.model_dump(exclude_none=True)
    seconds = given.pop("max_duration_seconds", None)
    if seconds is not None:
        given["max_duration"] = timedelta(seconds=seconds)
    return given
