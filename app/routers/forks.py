"""`POST /turns/{id}/fork`: a new turn from the history of another."""

from fastapi import APIRouter, Response

from app.http.etags import TURN_HEADERS
from app.http.openapi import may_answer
from app.http.sse import EVENT_STREAM
from app.routers.deps import TurnPath
from app.routers.exchange import KEYED, ExchangeDep
from app.routers.model_names import ModelName
from app.routers.turn_schemas import TurnOutput
from app.routers.wire import Input
from app.services.commands import Commanded
from app.services.deps import Caller
from app.services.forks import fork
from app.turn.ids import TurnId

router = APIRouter(prefix="/turns/{turnId}/fork", tags=["turns"])


class ForkBody(Input):
    """How the new turn goes on."""

    model: ModelName | None = None


_AS_IT_IS = ForkBody()


@router.post(
    "",
    status_code=202,
    response_model=TurnOutput,
    responses={200: EVENT_STREAM, 202: {"headers": TURN_HEADERS}},
    dependencies=[KEYED],
    openapi_extra=may_answer("turn_not_found", "not_resumable"),
)
async def fork_a_turn(
    turn_id: TurnPath, exchange: ExchangeDep, body: ForkBody = _AS_IT_IS
) -> Response:
    """A new turn in a new conversation, which goes on where the history of this one stands.

    The turn itself stays as it is; it may be failed, cancelled or at work. Calls of it that have no
    result are reported to the model as unknown, and none of them is run.
    """

    async def command(caller: Caller) -> Commanded:
        return await fork(exchange.services, caller, TurnId(turn_id), model=body.model)

    return await exchange.answer(command)
