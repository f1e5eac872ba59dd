"""`POST /turns/{id}/resume`: commands on a turn that waits."""

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Body, Request, Response
from pydantic import Discriminator, Tag

from app.routers.answers import (
    json_answer,
    stream_answer,
    turn_headers,
    turn_resource,
    wants_events,
)
from app.routers.deps import CallerDep, IfMatch, LanguageDep, Prefer, StateDep
from app.routers.turn_schemas import ContinueBody, RetryBody, RetryModelBody, TurnOutput
from app.services.follow import Cursor
from app.services.turns import ResumeCommand, resume, wait_until_at_rest
from app.turn.ids import FailureId, TurnId
from app.turn.inputs import ContinueNow, Retry, RetryModel

router = APIRouter(prefix="/turns/{turn_id}/resume", tags=["turns"])


def _command(body: Any) -> str | None:  # noqa: ANN401 - whatever JSON was sent
    """A body that holds only a failureId means RETRY_MODEL."""
    if not isinstance(body, dict):
        return None
    return body.get("command", "RETRY_MODEL" if set(body) == {"failureId"} else None)


ResumeBody: TypeAlias = Annotated[
    Annotated[RetryModelBody, Tag("RETRY_MODEL")]
    | Annotated[RetryBody, Tag("RETRY")]
    | Annotated[ContinueBody, Tag("CONTINUE")],
    Discriminator(_command),
]


@router.post("", status_code=202, response_model=TurnOutput)
async def resume_a_turn(
    turn_id: str,
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


def _given(body: RetryModelBody | RetryBody | ContinueBody) -> ResumeCommand:
    match body:
        case RetryModelBody(failure_id=failure_id):
            return RetryModel(failure_id=FailureId(failure_id))
        case RetryBody():
            return Retry()
        case ContinueBody():
            return ContinueNow()
