"""Rules for answers to calls that wait for somebody (turn semantics, table 2.3, T71 to T84).

An answer names its call, and counts for an open wait whatever else the turn does (C28). What it
must be depends on the wait:

    APPROVE_TOOL   the approval is kept with its fingerprint, and the call is due again; for another
                   fingerprint than was asked for it is refused (T71, case 100)
    REJECT_TOOL    the call has its result: no. Approvals that it had stay on record (T72, case 95)
    USER_INPUT     to the model's question: text as it is, or values, which become the result (T76);
                   to a tool's form: values only, with which it is entered again (T78, T79)
    a message      in words alone it answers the model's question, where nothing else is asked (T76)
    TOOL_RESULT    what was done outside, as long as its tool allows (T81)
    TOOL_ERROR     an error for the model to read; the turn does not fail by it (T82, case 110)

Of an attempt whose end nobody knows (`app.turn.lost_tools`, `park`) the same commands say what
became of it (case 63): TOOL_RESULT, it is done and this came of it; APPROVE_TOOL, it is not done,
so the call is due again; REJECT_TOOL, nobody can say, and it is given up.

The commands are refused once the wait's time is over, whatever its expiry does (T89); a message
never is (T90).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.blocking import given_up
from app.turn.errors import (
    AnswerInvalid,
    CorrelationMismatch,
    Rejected,
    ResultTooLarge,
    WaitExpired,
    WrongCommand,
)
from app.turn.ids import CallId
from app.turn.open_calls import OpenCall
from app.turn.rejections import given_up_by_a_person, rejected
from app.turn.resuming import does_not_fit, named, resumed_if_due
from app.turn.state import Turn
from app.turn.states import WaitingForCalls
from app.turn.status import BLOCKED, ResumedBy
from app.turn.transcript import Outcome, TextPart, ToolResult, UserMessage, text_of
from app.turn.waits import ApprovalWait, ExternalWait, FormWait, OnOversize, Wait, is_late

W = TypeVar("W", ApprovalWait, FormWait, ExternalWait)

NAMES: Mapping[type[i.CallCommand], ResumedBy] = {
    i.ApproveTool: "APPROVE_TOOL",
    i.RejectTool: "REJECT_TOOL",
    i.GiveToolResult: "TOOL_RESULT",
    i.GiveToolError: "TOOL_ERROR",
}
_WAITS_FOR: Mapping[str, str] = {
    "approval": "an approval",
    "form": "the user",
    "external": "a result from outside",
}


def call_commanded(
    turn: Turn, given: i.CallCommand, *, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    """The call has its answer, and the turn goes on if that was what it waited for.

    Raises:
        TurnNotBlocked, TurnTerminal, WrongCommand: nothing waits for such a command.
        CorrelationMismatch: it names another call, or another request of it.
        WaitExpired: it comes too late.
        ResultTooLarge: the result is longer than its tool allows.
    """
    command = NAMES[type(given)]
    events = _answered(turn, given, command, at, agent)
    return resumed_if_due(turn, events, command, given.call_id, at=at, agent=agent)


def form_filled(
    turn: Turn, given: i.UserInput, *, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    """What the user says to a form or to the model's question (T76, T76a, T78, T79).

    Raises:
        TurnNotBlocked, TurnTerminal, WrongCommand: no call waits for the user.
        CorrelationMismatch: it names another call, or fits another schema than the one asked with.
        WaitExpired: it comes too late.
        AnswerInvalid: it says nothing, or not in the way that is asked for, or not to which call.
    """
    call, wait = _waiting(turn, _form_meant(turn, given), "USER_INPUT", FormWait, at)
    if given.data is not None:
        _check_schema(turn, wait, given.data)
    if wait.asked_by == "tool":
        events = _values_received(turn, call, given)
    elif given.data is not None and given.message is not None:
        raise AnswerInvalid(turn, "text, data: answer in words or with values, not with both")
    elif given.data is not None:
        events = _result_received(call, given.data.values, data=given.data.values)
    elif given.message is not None and text_of(given.message.content).strip():
        events = _result_received(call, text_of(given.message.content))
    else:
        raise AnswerInvalid(turn, "text: an answer needs some")
    return resumed_if_due(turn, events, "USER_INPUT", call.call_id, at=at, agent=agent)


def asks_in_words(turn: Turn) -> bool:
    """Whether the turn waits for an answer to the model's question, and for nothing else."""
    match turn.state, turn.waiting_calls:
        case WaitingForCalls(), (OpenCall(wait=FormWait(asked_by="model")),):
            return True
        case _:
            return False


def is_answered_by(turn: Turn, message: UserMessage) -> bool:
    """Whether the message is what the model has asked for: words, and words only."""
    is_text = all(isinstance(part, TextPart) for part in message.content)
    return asks_in_words(turn) and is_text and bool(text_of(message.content).strip())


def answered_in_words(
    turn: Turn, message: UserMessage, *, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    """A message, `is_answered_by`: it becomes the result of the call that has asked (T76)."""
    events = _result_received(turn.waiting_calls[0], text_of(message.content))
    return resumed_if_due(turn, events, "USER_MESSAGE", message.message_id, at=at, agent=agent)


def only_closes_calls(turn: Turn, message: UserMessage) -> bool:
    """Whether the message gives up what waits for somebody, and is no answer to it.

    Like a rejection it needs no agent: nothing runs before the agent is there (T97).
    """
    return isinstance(turn.state, WaitingForCalls) and not is_answered_by(turn, message)


def keeps_out_messages(turn: Turn) -> bool:
    """Whether a form waits that no message may give up, unless it is the answer (C22)."""
    waits = (call.wait for call in turn.waiting_calls)
    return any(isinstance(wait, FormWait) and wait.strict for wait in waits)


def _answered(
    turn: Turn, given: i.CallCommand, command: str, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    match given:
        case i.ApproveTool(call_id=call_id):
            call, approval = _waiting(turn, call_id, command, ApprovalWait, at)
            return (_approved(turn, call, approval, given, at),)
        case i.RejectTool(call_id=call_id):
            call, approval = _waiting(turn, call_id, command, ApprovalWait, at)
            no = given_up_by_a_person if call.is_parked else rejected
            return (_not_approved(call, approval, given, at), no(call, given.reason))
        case i.GiveToolResult(call_id=call_id):
            return (_completed(turn, given, at, parked=_is_parked(turn, call_id)),)
        case i.GiveToolError(call_id=call_id):
            call, _ = _waiting(turn, call_id, command, ExternalWait, at)
            return _failed(turn, call, given, agent)


def _is_parked(turn: Turn, call_id: CallId) -> bool:
    return any(call.call_id == call_id and call.is_parked for call in turn.waiting_calls)


def _completed(
    turn: Turn, given: i.GiveToolResult, at: datetime, *, parked: bool
) -> e.ToolCompleted | e.ExternalToolCompleted:
    if parked:
        call, asked = _waiting(turn, given.call_id, "TOOL_RESULT", ApprovalWait, at)
        said = _fitting(turn, given.output, asked.max_result_bytes, "refuse")
        result = _result(call, Outcome.COMPLETED, said)
        return e.ToolCompleted(position=call.position, result=result, known_by="person")
    call, wait = _waiting(turn, given.call_id, "TOOL_RESULT", ExternalWait, at)
    said = _fitting(turn, given.output, wait.max_result_bytes, wait.on_oversize)
    result = _result(call, Outcome.COMPLETED, said)
    return e.ExternalToolCompleted(position=call.position, result=result)


def _approved(
    turn: Turn, call: OpenCall, wait: ApprovalWait, given: i.ApproveTool, at: datetime
) -> e.ToolApprovalDecided:
    if given.fingerprint not in {None, wait.fingerprint}:
        detail = (
            f"call {call.call_id!r} waits for approval of {wait.fingerprint!r}, "
            f"not of {given.fingerprint!r}; look at what it wants now"
        )
        raise CorrelationMismatch(turn, detail)
    return e.ToolApprovalDecided(
        call_id=call.call_id,
        tool_name=call.tool_name,
        stage=wait.stage,
        fingerprint=wait.fingerprint,
        is_approved=True,
        actor_id=given.actor_id,
        at=at,
    )


def _not_approved(
    call: OpenCall, wait: ApprovalWait, given: i.RejectTool, at: datetime
) -> e.ToolApprovalDecided:
    return e.ToolApprovalDecided(
        call_id=call.call_id,
        tool_name=call.tool_name,
        stage=wait.stage,
        fingerprint=wait.fingerprint,
        is_approved=False,
        actor_id=given.actor_id,
        at=at,
        reason=given.reason or None,
    )


def _failed(
    turn: Turn, call: OpenCall, given: i.GiveToolError, agent: Agent | None
) -> tuple[e.Event, ...]:
    result = _result(call, Outcome.ERROR, f"The call failed ({given.code}): {given.message}")
    failed = e.ExternalToolFailed(position=call.position, result=result, code=given.code)
    return (failed, *(() if agent is None else given_up(turn, (failed,), agent)))


def _fitting(turn: Turn, text: str, most: int, on_oversize: OnOversize) -> str:
    """The text, as long as it may be; cut between two characters where the tool says so."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= most:
        return text
    if on_oversize == "refuse":
        detail = (
            f"the result has {len(encoded)} bytes, {most} are allowed; "
            "the call still waits: send a shorter one"
        )
        raise ResultTooLarge(turn, detail)
    marker = f"\n[cut: the result had {len(encoded)} bytes]"
    if len(marker) > most:
        marker = ""  # what is kept is no longer than its tool allows, marked or not
    room = most - len(marker)
    return encoded[:room].decode(errors="ignore") + marker


def _values_received(turn: Turn, call: OpenCall, given: i.UserInput) -> tuple[e.Event, ...]:
    if given.data is None:
        raise AnswerInvalid(turn, "data: the form is filled in with values, not with text")
    if given.message is not None:
        raise AnswerInvalid(turn, "text: the form is filled in with values alone")
    return (e.ToolInputReceived(call_id=call.call_id, data=given.data.values),)


def _result_received(call: OpenCall, text: str, *, data: str | None = None) -> tuple[e.Event, ...]:
    result = _result(call, Outcome.COMPLETED, text)
    return (
        e.ToolInputReceived(call_id=call.call_id, data=data),
        e.ToolCompleted(position=call.position, result=result),
    )


def _check_schema(turn: Turn, wait: FormWait, data: i.FormData) -> None:
    if wait.schema is None:
        raise AnswerInvalid(turn, "data: the question is asked in words; answer it with text")
    if data.schema != wait.schema:
        raise CorrelationMismatch(turn, "the values were checked against another form; look again")


def _form_meant(turn: Turn, given: i.UserInput) -> CallId:
    """The call it names, or the only one that waits for the user."""
    if given.call_id is not None:
        return given.call_id
    forms = [call.call_id for call in turn.waiting_calls if isinstance(call.wait, FormWait)]
    if not forms:
        raise does_not_fit(turn, "USER_INPUT")
    if len(forms) > 1:
        raise AnswerInvalid(turn, f"callId: which of them, {named(forms)}?")
    return forms[0]


def _waiting(
    turn: Turn, call_id: CallId, command: str, kind: type[W], at: datetime
) -> tuple[OpenCall, W]:
    """The open call that a command is for, with what it waits for."""
    call = next((call for call in turn.waiting_calls if call.call_id == call_id), None)
    if call is None or call.wait is None:
        raise _no_such_call(turn, call_id, command)
    if not isinstance(call.wait, kind):
        what = _WAITS_FOR[call.wait.kind]
        raise WrongCommand(turn, f"call {call_id!r} waits for {what}; it takes no {command}")
    _check_time(turn, call_id, call.wait, at)
    return call, call.wait


def _no_such_call(turn: Turn, call_id: CallId, command: str) -> Rejected:
    if not turn.waiting_calls or turn.status not in BLOCKED:
        return does_not_fit(turn, command)
    current = named([call.call_id for call in turn.waiting_calls])
    detail = f"turn {turn.identity.turn_id!r} waits for {current}, not for {named([call_id])}"
    return CorrelationMismatch(turn, detail)


def _check_time(turn: Turn, call_id: CallId, wait: Wait, at: datetime) -> None:
    if is_late(wait, at=at):
        raise WaitExpired(turn, f"the time for an answer to call {call_id!r} is over")


def _result(call: OpenCall, outcome: Outcome, content: str) -> ToolResult:
    return ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=outcome, content=content
    )
