"""What a message would do, as a dry run says it."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from app.http.error_handlers import refusal_document
from app.routers.reader import Reader
from app.routers.wire import Output
from app.services.deps import Services
from app.services.drafts import Draft
from app.services.errors import Refused
from app.services.foreseen import Foreseen
from app.turn.errors import Rejected

_PROBLEM = {"anyOf": [{"$ref": "#/components/schemas/Problem"}, {"type": "null"}]}


class ClosedCallOutput(Output):
    """An open call that would be closed, and how."""

    call_id: str
    tool_name: str
    outcome: str


class ForeseenOutput(Output):
    """What the message would do now. Nothing of it has happened."""

    effect: Literal["OPEN", "ANSWER", "QUEUE", "STEER", "REPLAN", "KNOWN", "REFUSE"]
    turn_id: str | None = Field(
        description="The turn that would take it, has it, or is in its way; "
        "null when there is none yet."
    )
    conversation_id: str | None = Field(description="null when it would be made for the message.")
    closes: list[ClosedCallOutput]
    problem: Annotated[dict[str, Any] | None, WithJsonSchema(_PROBLEM)] = Field(
        description="Of `REFUSE`: the problem that the message would be answered with."
    )


def foreseen_output(foreseen: Foreseen) -> ForeseenOutput:
    return ForeseenOutput(
        effect=foreseen.effect,
        turn_id=foreseen.turn_id,
        conversation_id=foreseen.conversation_id,
        closes=[
            ClosedCallOutput(
                call_id=result.call_id, tool_name=result.tool_name, outcome=result.outcome
            )
            for result in foreseen.closes
        ],
        problem=None,
    )


def refused_output(
    refusal: Rejected | Refused, draft: Draft, services: Services, reader: Reader
) -> ForeseenOutput:
    """What the refusal would be, word for word; by its problem it is one."""
    return ForeseenOutput(
        effect="REFUSE",
        turn_id=None if refusal.turn is None else refusal.turn.identity.turn_id,
        conversation_id=None if draft.is_in_new_conversation else draft.conversation_id,
        closes=[],
        problem=refusal_document(refusal, services, reader.principal, reader.language),
    )
