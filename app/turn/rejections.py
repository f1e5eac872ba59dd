"""Results of calls that may not run: the policy forbids them, or a person has said no.

Neither is a failure of the turn: the model reads the result and goes on (seed rule AF-91).
"""

from dataclasses import replace

from app.turn import events as e
from app.turn.interruption import interrupted
from app.turn.open_calls import OpenCall
from app.turn.transcript import InterruptionReason, Outcome, ToolResult
from app.turn.waits import Denied


def denied(call: OpenCall, verdict: Denied) -> e.ToolRejected:
    """The policy's no (T39)."""
    return _rejected(
        call, f"The policy does not allow this call ({verdict.code}).", verdict.message
    )


def rejected(call: OpenCall, reason: str) -> e.ToolRejected:
    """A person's no (T72)."""
    return _rejected(call, "The call was rejected by a person.", reason)


def given_up_by_a_person(call: OpenCall, reason: str) -> e.ToolInterrupted:
    """A person's no to a call that had begun: nobody can say if it has taken effect (case 63)."""
    answer = interrupted(call, Outcome.UNKNOWN, InterruptionReason.GIVEN_UP)
    if not reason.strip():
        return answer
    content = f"{answer.result.content} A person gave it up. The reason given: {reason}"
    return replace(answer, result=replace(answer.result, content=content))


def _rejected(call: OpenCall, what: str, why: str) -> e.ToolRejected:
    content = f"{what} It was not carried out."
    if why.strip():
        content = f"{content} The reason given: {why}"
    result = ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=Outcome.REJECTED, content=content
    )
    return e.ToolRejected(position=call.position, result=result)
