"""`/conversations/{id}/resume-point` and `/resume`: going on without a new message."""

from typing import Annotated

from fastapi import APIRouter, Body, Response
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from app.http.etags import TURN_HEADERS
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.ports import StoredTurn
from app.routers.deps import CallerDep, ConversationPath, LanguageDep, ServicesDep
from app.routers.exchange import KEYED, ExchangeDep
from app.routers.model_names import ModelName
from app.routers.resume_point_schemas import ResumePointOutput, resume_point_output
from app.routers.turn_schemas import TurnOutput
from app.routers.wire import Input
from app.services.commands import Commanded
from app.services.deps import Caller
from app.services.resume_point import ResumeAsked, find_resume_point, resume_conversation
from app.services.turns import offered
from app.turn.ids import ConversationId, FailureId

router = APIRouter(prefix="/conversations/{conversationId}", tags=["conversations"])


class ResumeConversationBody(Input):
    """How to go on."""

    failure_id: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The failure that the turn waits for now, where it waits for one."
    )
    model: ModelName | None = None
    lenient: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="A finished answer is no error: its turn is the answer."
    )


def _without_messages(body: object) -> object:
    """A resume adds no message of its own (T12, C4)."""
    if any(_names(body, field) for field in ("messages", "message", "content")):
        raise PydanticCustomError("messages_not_allowed", "send a message to the conversation")
    return body


def _names(body: object, field: str) -> bool:
    return isinstance(body, dict) and field in body


_AS_IT_IS = ResumeConversationBody()


@router.get("/resume-point", openapi_extra=may_answer("conversation_not_found", "payload_invalid"))
async def read_a_resume_point(
    conversation_id: ConversationPath,
    services: ServicesDep,
    caller: CallerDep,
    language: LanguageDep,
) -> ResumePointOutput:
    """Where the conversation can be resumed, and what that would do; asking changes nothing."""
    found = await find_resume_point(services, caller, ConversationId(conversation_id))
    actions = () if found.turn is None else offered(services, found.turn, caller.principal)
    return resume_point_output(found, actions, language)


@router.post(
    "/resume",
    status_code=202,
    response_model=TurnOutput,
    responses={
        200: {
            "model": TurnOutput,
            "description": "The last turn, for `lenient`: it is finished, and nothing was done. "
            f"{EVENT_STREAM['description']}",
            "content": EVENT_STREAM["content"],
            "headers": TURN_HEADERS,
        },
        202: {"headers": TURN_HEADERS},
    },
    dependencies=[KEYED],
    openapi_extra=may_answer(
        "conversation_not_found",
        "not_resumable",
        "correlation_mismatch",
        "messages_not_allowed",
        "version_conflict",
        "agent_version_unavailable",
    ),
)
async def resume_a_conversation(
    conversation_id: ConversationPath,
    exchange: ExchangeDep,
    body: Annotated[ResumeConversationBody, BeforeValidator(_without_messages), Body()] = _AS_IT_IS,
) -> Response:
    """Goes on with a conversation from its resume point, without a new message.

    A paused turn and one whose worker is gone go on themselves, and so does one that waits for its
    model, for the failure that is named. Behind an ended turn, or a history from elsewhere, a new
    turn goes on (`resumesTurnId`). Where there is nothing to resume it is `not_resumable`, with the
    reason of the resume point.
    """
    asked = ResumeAsked(
        failure_id=None if body.failure_id is None else FailureId(body.failure_id),
        model=body.model,
        is_lenient=body.lenient,
    )

    async def command(caller: Caller) -> Commanded:
        services = exchange.services
        return await resume_conversation(services, caller, ConversationId(conversation_id), asked)

    async def render(stored: StoredTurn, seen_version: int) -> Response:
        is_as_before = stored.turn.is_terminal and stored.turn.version == seen_version
        return await exchange.turn(stored, 200 if is_as_before else 202)

    return await exchange.answer(command, render)
