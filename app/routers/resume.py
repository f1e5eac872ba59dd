"""`POST /turns/{id}/resume`: commands on a turn that waits."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Body, Response
from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from app.http.etags import TURN_HEADERS
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.routers.deps import IfMatch, TurnPath
from app.routers.exchange import KEYED, ExchangeDep
from app.routers.resume_schemas import (
    ApproveToolBody,
    CallBody,
    ContinueBody,
    FailureBody,
    RejectToolBody,
    ReplanBody,
    ResumeTurnBody,
    RetryBody,
    RetryModelBody,
    ToolErrorBody,
    ToolResultBody,
    UserInputBody,
    call_command,
    changes_of,
    limit_change,
)
from app.routers.turn_schemas import TurnOutput
from app.services.answers import Answer, give_answer
from app.services.calls import answer_call
from app.services.commands import Commanded
from app.services.deps import Caller, Services
from app.services.messages import Posted, Replacement, replan
from app.services.turns import ResumeCommand, resume, resume_with
from app.turn.ids import CallId, FailureId, MessageId, TurnId
from app.turn.inputs import ContinueNow, Resume, Retry, RetryModel

router = APIRouter(prefix="/turns/{turnId}/resume", tags=["turns"])


def _without_messages(body: object) -> object:
    """A resume adds no message of its own; `REPLAN_WITH_MESSAGE` carries one (T12, C4)."""
    if _names(body, "messages"):
        raise PydanticCustomError(
            "messages_not_allowed",
            "send a message to the conversation, or REPLAN_WITH_MESSAGE with one message",
        )
    return body


def _names(body: object, field: str) -> bool:
    return isinstance(body, dict) and field in body


def _form(body: object) -> str | None:
    if not isinstance(body, dict):
        return None
    if "command" in body:
        return "command"
    return "RETRY_MODEL" if "failureId" in body else None


CommandBody: TypeAlias = Annotated[
    RetryModelBody
    | RetryBody
    | ContinueBody
    | ResumeTurnBody
    | UserInputBody
    | ReplanBody
    | CallBody,
    Field(discriminator="command"),
]
ResumeBody: TypeAlias = Annotated[
    Annotated[CommandBody, Tag("command")] | Annotated[FailureBody, Tag("RETRY_MODEL")],
    Discriminator(
        _form,
        custom_error_type="command_missing",
        custom_error_message="say a command: RETRY_MODEL with a failureId, RETRY, CONTINUE, "
        "RESUME, USER_INPUT with a text, REPLAN_WITH_MESSAGE with a message, or APPROVE_TOOL, "
        "REJECT_TOOL, TOOL_RESULT or TOOL_ERROR with a callId",
    ),
    BeforeValidator(_without_messages),
]


@router.post(
    "",
    status_code=202,
    response_model=TurnOutput,
    responses={200: EVENT_STREAM, 202: {"headers": TURN_HEADERS}},
    dependencies=[KEYED],
    openapi_extra=may_answer(
        "turn_not_found",
        "forbidden",
        "requester_may_not_approve",
        "turn_not_blocked",
        "turn_terminal",
        "messages_not_allowed",
        "messages_required",
        "wrong_command",
        "correlation_mismatch",
        "retry_not_due",
        "wait_expired",
        "result_too_large",
        "version_conflict",
        "agent_version_unavailable",
        "precondition_failed",
    ),
)
async def resume_a_turn(
    turn_id: TurnPath,
    body: Annotated[ResumeBody, Body()],
    exchange: ExchangeDep,
    if_match: IfMatch,
) -> Response:
    """Goes on with a waiting turn from where it stood.

    `RETRY_MODEL` names the failure the turn waits for now; its `changes` hold for the rest of the
    turn. `RETRY` takes a scheduled retry that is due, `CONTINUE` takes it at once. `RESUME` goes on
    with a paused turn, for operators under other limits where `changes` say so. `USER_INPUT`
    answers what the user is asked: the text to a plain question becomes a message of the user's, a
    form takes `data`. `APPROVE_TOOL` and `REJECT_TOOL` are for a call that waits for an approval,
    `TOOL_RESULT` and `TOOL_ERROR` for one that is with an outside tool; a result that comes too
    late is refused and kept (`GET /turns/{turnId}/late-results`). `REPLAN_WITH_MESSAGE` closes
    every open call and goes on with its message; the others add no message.
    """

    async def command(caller: Caller) -> Commanded | Posted:
        return await _done(exchange.services, caller, TurnId(turn_id), body, if_match)

    return await exchange.answer(command)


async def _done(
    services: Services,
    caller: Caller,
    turn_id: TurnId,
    body: CommandBody | FailureBody,
    version: int | None,
) -> Commanded | Posted:
    match body:
        case ReplanBody(message=message):
            given = Replacement(
                turn_id=turn_id,
                content=message.parts(),
                message_id=MessageId(message.message_id or services.new_id("msg")),
            )
            return await replan(services, caller, given, expected_version=version)
        case UserInputBody():
            call_id = None if body.call_id is None else CallId(body.call_id)
            said = Answer(turn_id=turn_id, text=body.text, call_id=call_id, data=body.data)
            return await give_answer(services, caller, said, expected_version=version)
        case ApproveToolBody() | RejectToolBody() | ToolResultBody() | ToolErrorBody():
            given_to_call = call_command(body, caller.principal.actor_id)
            return await answer_call(
                services, caller, turn_id, given_to_call, expected_version=version
            )
        case RetryModelBody() | ResumeTurnBody() if (change := limit_change(body)) is not None:
            command = _changing(body)
            return await resume_with(
                services, caller, turn_id, command, change, expected_version=version
            )
        case _:
            return await resume(services, caller, turn_id, _command(body), expected_version=version)


def _command(
    body: RetryModelBody | FailureBody | RetryBody | ContinueBody | ResumeTurnBody,
) -> ResumeCommand:
    match body:
        case FailureBody(failure_id=failure_id):
            return RetryModel(failure_id=FailureId(failure_id))
        case RetryBody():
            return Retry()
        case ContinueBody():
            return ContinueNow()
        case RetryModelBody() | ResumeTurnBody():
            return _changing(body)


def _changing(body: RetryModelBody | ResumeTurnBody) -> RetryModel | Resume:
    match body:
        case RetryModelBody(failure_id=failure_id):
            return RetryModel(failure_id=FailureId(failure_id), changes=changes_of(body))
        case ResumeTurnBody():
            return Resume()
