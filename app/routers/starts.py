"""Turns that are started in so many words, and those that wait on hold to be run."""

from fastapi import APIRouter, Response

from app.http.etags import TURN_HEADERS
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.routers.deps import ConversationPath, IfMatch, TurnPath
from app.routers.exchange import KEYED, ExchangeDep
from app.routers.message_schemas import MessageBody
from app.routers.posting import MAY_ANSWER, POSTED, DryRun, answer_to
from app.routers.turn_schemas import PostedTurnOutput, TurnOutput
from app.services.commands import Commanded
from app.services.deps import Caller
from app.services.turns import resume
from app.turn.ids import TurnId
from app.turn.inputs import Run

router = APIRouter(tags=["turns"])

_OF_A_CONVERSATION = "/conversations/{conversationId}/turns"
_RUN = "/turns/{turnId}/run"


@router.post(
    _OF_A_CONVERSATION,
    status_code=202,
    response_model=PostedTurnOutput,
    responses=POSTED,
    dependencies=[KEYED],
    openapi_extra=MAY_ANSWER,
)
async def start_a_turn(
    conversation_id: ConversationPath,
    body: MessageBody,
    exchange: ExchangeDep,
    *,
    dry_run: DryRun = False,
) -> Response:
    """Opens a turn, and never goes on with another: an active one, waiting or not, is in its way.

    The conversation is made when it is new. A message whose `messageId` is known is answered with
    the turn that took it. `whenRunning` has no say here.
    """
    return await answer_to(exchange, body, conversation_id, is_dry_run=dry_run, starts=True)


@router.post(
    "/turns",
    status_code=202,
    response_model=PostedTurnOutput,
    responses=POSTED,
    dependencies=[KEYED],
    openapi_extra=MAY_ANSWER,
)
async def start_a_turn_of_its_own(
    body: MessageBody, exchange: ExchangeDep, *, dry_run: DryRun = False
) -> Response:
    """Opens a turn in a new conversation, under an id of the server's.

    A `messageId` belongs to the conversation that was made for it: sent again by the same caller,
    the message is answered with the turn it has opened.
    """
    return await answer_to(exchange, body, None, is_dry_run=dry_run, starts=True)


@router.post(
    _RUN,
    status_code=202,
    response_model=TurnOutput,
    responses={200: EVENT_STREAM, 202: {"headers": TURN_HEADERS}},
    dependencies=[KEYED],
    openapi_extra=may_answer(
        "turn_not_found",
        "turn_not_blocked",
        "turn_terminal",
        "wrong_command",
        "version_conflict",
        "agent_version_unavailable",
        "precondition_failed",
    ),
)
async def run_a_turn(turn_id: TurnPath, exchange: ExchangeDep, if_match: IfMatch) -> Response:
    """Lets a turn go that was opened with `hold`: the next free worker takes it."""

    async def command(caller: Caller) -> Commanded:
        services = exchange.services
        return await resume(services, caller, TurnId(turn_id), Run(), expected_version=if_match)

    return await exchange.answer(command)
