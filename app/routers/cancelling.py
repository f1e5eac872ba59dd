"""`POST /turns/{id}/cancel`: ending a turn, and what that makes of its calls."""

from fastapi import APIRouter, Response

from app.http.openapi import may_answer
from app.ports import StoredTurn
from app.routers.answers import json_answer, now_or_soon, turn_headers, turn_resource
from app.routers.deps import IfMatch, TurnPath
from app.routers.exchange import KEYED, ExchangeDep
from app.routers.turn_schemas import TurnOutput
from app.routers.wire import Output
from app.services.cancelled import given_up
from app.services.commands import Commanded
from app.services.deps import Caller
from app.services.turns import cancel
from app.turn.ids import TurnId
from app.turn.transcript import Outcome

router = APIRouter(prefix="/turns/{turnId}/cancel", tags=["turns"])


class GivenUpOutput(Output):
    """A call that the cancellation gives up."""

    call_id: str
    tool_name: str
    outcome: Outcome | None
    """`cancelled` or `not_started`: it was stopped before it had an effect, or never begun.
    `unknown`: it may have had an effect that nobody could stop. null: it is in flight and has its
    grace period; once the turn has ended, a second cancellation says what became of it."""


class CancelledTurnOutput(TurnOutput):
    """The turn, ended or about to."""

    given_up: list[GivenUpOutput]


@router.post(
    "",
    response_model=CancelledTurnOutput,
    responses=now_or_soon(CancelledTurnOutput, "It ends as soon as it can."),
    dependencies=[KEYED],
    openapi_extra=may_answer(
        "turn_not_found", "turn_terminal", "version_conflict", "precondition_failed"
    ),
)
async def cancel_a_turn(turn_id: TurnPath, exchange: ExchangeDep, if_match: IfMatch) -> Response:
    """Ends the turn for good: at once (200), or as soon as what is in flight has ended (202).

    Tools in flight have their grace period, then they are ended. `givenUp` says of each call
    whether it was stopped, never begun, or may have had an effect that nobody could stop; the
    events tell readers, and `…/interruptions` keeps it.
    """

    async def command(caller: Caller) -> Commanded:
        return await cancel(exchange.services, caller, TurnId(turn_id), expected_version=if_match)

    async def render(stored: StoredTurn, _seen_version: int) -> Response:
        services = exchange.services
        turn = await turn_resource(services, exchange.caller, stored, exchange.language)
        calls = await given_up(services, stored)
        body = CancelledTurnOutput(
            **dict(turn),
            given_up=[GivenUpOutput.model_validate(each, from_attributes=True) for each in calls],
        )
        return json_answer(body, 200 if stored.turn.is_terminal else 202, turn_headers(stored))

    return await exchange.answer_at_once(command, render)
