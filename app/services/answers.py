"""`USER_INPUT`: what a user says to a question, or fills into a form."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.ports import Receipt
from app.ports.schema_check import problems_in
from app.services.commands import Commanded, carry_out
from app.services.deps import Caller, Services
from app.services.drafts import digest_of
from app.services.errors import FormInvalid
from app.services.found import get_turn, require_agent
from app.turn.ids import CallId, MessageId, TurnId
from app.turn.inputs import FormData, UserInput
from app.turn.state import Turn
from app.turn.states import WaitingForUser
from app.turn.status import BLOCKED
from app.turn.transcript import TextPart, UserMessage
from app.turn.waits import FormWait, is_late

NO_SCHEMA = ""
"""No form has it, so values that are for no form fit none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer as it was given; what of it fits is the turn's to say."""

    turn_id: TurnId
    text: str | None
    call_id: CallId | None
    data: Mapping[str, Any] | None


async def give_answer(
    services: Services, caller: Caller, given: Answer, *, expected_version: int | None = None
) -> Commanded:
    """The turn, going on with the answer: a message of the user's, or what a call asks for.

    Values are checked against the schema that the form was asked with, whatever the agent's newest
    version says (T78, case 105).

    Raises:
        TurnNotFound, AgentVersionUnavailable: as their names say.
        FormInvalid: the values do not fit the form.
        Rejected: the turn asks nothing, or this is no answer to what it asks.
        VersionMoved: it is not at `expected_version`.
        Contended: it lost every race.
    """
    stored = await get_turn(services, caller, given.turn_id)
    turn = stored.turn
    if turn.status in BLOCKED or turn.waiting_calls:
        require_agent(services, stored)
    message_id = MessageId(services.new_id("msg"))
    content = (TextPart(text=given.text or ""),)
    said = bool(given.text and given.text.strip())
    asked = UserInput(
        message=UserMessage(message_id=message_id, content=content) if said else None,
        call_id=given.call_id,
        data=None if given.data is None else _checked(services, turn, given),
    )
    audit = caller.entry(
        "USER_INPUT",
        conversation_id=turn.identity.conversation_id,
        turn_id=given.turn_id,
        call_id=given.call_id,
    )
    is_said = isinstance(turn.state, WaitingForUser) and not given.call_id
    receipt = Receipt(message_id=message_id, digest=digest_of(content)) if is_said else None
    return await carry_out(
        services, caller, stored, asked, audit, receipt=receipt, expected_version=expected_version
    )


def _checked(services: Services, turn: Turn, given: Answer) -> FormData:
    """The values, which fit the form; of a form whose time is over they are not looked at (T89)."""
    schema, data = schema_of(turn, given.call_id), given.data or {}
    is_in_time = not any(is_late(wait, at=services.clock()) for wait in _forms(turn, given.call_id))
    problems = problems_in(schema, data) if schema != NO_SCHEMA and is_in_time else ()
    if problems:
        raise FormInvalid(turn, problems)
    values = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return FormData(values=values, schema=schema)


def schema_of(turn: Turn, call_id: CallId | None) -> str:
    """The frozen schema of the form that the call waits with, or of the only form there is."""
    schemas = [wait.schema for wait in _forms(turn, call_id)]
    return schemas[0] or NO_SCHEMA if len(schemas) == 1 else NO_SCHEMA


def _forms(turn: Turn, call_id: CallId | None) -> list[FormWait]:
    return [
        call.wait
        for call in turn.waiting_calls
        if isinstance(call.wait, FormWait) and call_id in {None, call.call_id}
    ]
