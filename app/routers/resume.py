"""`POST /turns/{id}/resume`: commands on a turn that waits."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Body, Request, Response
from pydantic import Discriminator, Field, Tag

from app.http.etags import TURN_HEADERS
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.routers.answers import (
    json_answer,
    stream_answer,
    turn_headers,
    turn_resource,
    wants_events,
)
from app.routers.deps import CallerDep, IfMatch, LanguageDep, Prefer, StateDep, TurnPath
from app.routers.turn_schemas import (
    ContinueBody,
    FailureBody,
    RetryBody,
    RetryModelBody,
    TurnOutput,
)
from app.services.follow import Cursor
from app.services.turns import ResumeCommand, resume, wait_until_at_rest
from app.turn.ids import FailureId, TurnId
from app.turn.inputs import ContinueNow, Retry, RetryModel

router = APIRouter(prefix="/turns/{turnId}/resume", tags=["turns"])


def _form(body: object) -> str | None:
    if not isinstance(body, dict):
        return None
    if "command" in body:
        return "command"
    return "RETRY_MODEL" if "failureId" in body else None


CommandBody: TypeAlias = Annotated[
    RetryModelBody | RetryBody | ContinueBody, Field(discriminator="command")
]
ResumeBody: TypeAlias = Annotated[
    Annotated[CommandBody, Tag("command")] | Annotated[FailureBody, Tag("RETRY_MODEL")],
    Discriminator(
        _form,
        custom_error_type="command_missing",
        custom_error_message="say a command: RETRY_MODEL with a failureId, RETRY, or CONTINUE",
    ),
]


@router.post(
    "",
    status_code=202,
    response_model=TurnOutput,
    responses={200: EVENT_STREAM, 202: {"headers": TURN_HEADERS}},
    openapi_extra=may_answer(
        "turn_not_found",
        "turn_not_blocked",
        "turn_terminal",
        "wrong_command",
        "correlation_mismatch",
        "retry_not_due",
        "version_conflict",
        "agent_version_unavailable",
        "precondition_failed",
    ),
)
async def resume_a_turn(
    turn_id: TurnPath,
    body: Annotated[ResumeBody, Body()],
    request: Request,
    state: StateDep,
    caller: CallerDep,
    language: LanguageDep,
    prefer: Prefer,
    if_match: IfMatch,
) -> Response:
    """Goes on with a waiting turn from where it stood; adds no message.

    `RETRY_MODEL` names the failure the turn waits for now. `RETRY` takes a scheduled retry that is
    due, `CONTINUE` takes it at once.
    """
    services = state.services
    done = await resume(services, caller, TurnId(turn_id), _given(body), expected_version=if_match)
    if wants_events(request):
        return stream_answer(
            state,
            caller,
            done.stored.turn.identity,
            Cursor(version=done.seen_version),
            language,
            headers=turn_headers(done.stored),
        )
    stored = await wait_until_at_rest(services, caller, done.stored, seconds=prefer.wait_seconds)
    answer = await turn_resource(services, caller, stored, language)
    return json_answer(answer, 202, turn_headers(stored) | prefer.applied)


def _given(body: RetryModelBody | FailureBody | RetryBody | ContinueBody) -> ResumeCommand:
    match body:
        case RetryModelBody(failure_id=failure_id) | FailureBody(failure_id=failure_id):
            return RetryModel(failure_id=FailureId(failure_id))
        case RetryBody():
            return Retry()
        case ContinueBody():
            return ContinueNow()
