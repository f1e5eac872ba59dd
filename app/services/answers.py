"""`USER_INPUT`: what a user says to the question that a turn waits with."""

from dataclasses import dataclass
from functools import partial

from app.ports import Receipt, VersionConflict
from app.services.deps import Caller, Services
from app.services.drafts import digest_of
from app.services.errors import Contended
from app.services.found import get_turn, require_agent
from app.services.turns import Commanded
from app.turn.ids import CallId, MessageId, TurnId
from app.turn.inputs import FormData, UserInput
from app.turn.status import BLOCKED
from app.turn.transcript import TextPart, UserMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer as it was given; what of it fits is the turn's to say."""

    turn_id: TurnId
    text: str | None
    call_id: CallId | None
    has_data: bool


async def give_answer(
    services: Services, caller: Caller, given: Answer, *, expected_version: int | None = None
) -> Commanded:
    """The turn, going on with the answer as a message of the user's (T75).

    Raises:
        TurnNotFound, AgentVersionUnavailable: as their names say.
        Rejected: the turn asks nothing, or this is no answer to what it asks.
        VersionMoved: it is not at `expected_version`.
        Contended: it lost every race.
    """
    stored = await get_turn(services, caller, given.turn_id)
    if stored.turn.status in BLOCKED:
        require_agent(services, stored)
    message_id = MessageId(services.new_id("msg"))
    content = (TextPart(text=given.text or ""),)
    said = bool(given.text and given.text.strip())
    message = UserMessage(message_id=message_id, content=content) if said else None
    data = FormData(values="{}", schema="") if given.has_data else None
    asked = UserInput(message=message, call_id=given.call_id, data=data)
    audit = caller.entry(
        "USER_INPUT",
        conversation_id=stored.turn.identity.conversation_id,
        turn_id=given.turn_id,
    )
    receipt = Receipt(message_id=message_id, digest=digest_of(content))
    try:
        written = await services.writer.request(
            stored.turn,
            asked,
            partial(caller.command, audit, receipt=receipt),
            expected_version=expected_version,
        )
    except VersionConflict as error:
        raise Contended(str(error)) from error
    return Commanded(stored=written.stored, seen_version=written.seen_version)
