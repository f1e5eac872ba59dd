"""Answers for calls that get no result of their tool, and the words for them.

Every call a model has asked for needs exactly one result in the history, or the provider refuses
the next request. These are the results the service writes itself.
"""

from app.turn import events as e
from app.turn.state import OpenCall, Turn
from app.turn.transcript import ClosingMessage, Outcome, ToolResult

_WORDS = {
    Outcome.NOT_STARTED: "The call was not started. Nothing was done.",
    Outcome.UNKNOWN: (
        "The call was interrupted while it ran. It may or may not have taken effect: "
        "check the current state before you try it again."
    ),
    Outcome.CANCELLED: "The call was cancelled before it started. Nothing was done.",
    Outcome.SUPERSEDED: "The call was given up: a new message of the user came first.",
}


def interrupted(call: OpenCall, outcome: Outcome) -> e.ToolInterrupted:
    """The event that answers `call` without running it.

    `outcome` is one of `NOT_STARTED`, `UNKNOWN`, `CANCELLED` and `SUPERSEDED`.
    """
    result = ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=outcome, content=_WORDS[outcome]
    )
    return e.ToolInterrupted(position=call.position, result=result)


def closing(turn: Turn, words: str) -> tuple[e.Event, ...]:
    """What makes the history whole when a turn ends abnormally (case 128).

    One result per open call, then one closing message of the service.
    """
    answers = tuple(interrupted(call, _outcome_at_end(call)) for call in turn.open_calls)
    message = ClosingMessage(text=words)
    return (*answers, e.MessageAdded(position=turn.next_position, message=message))


def _outcome_at_end(call: OpenCall) -> Outcome:
    """A begun call is `unknown`: stopping our side does not show that nothing was done."""
    return Outcome.UNKNOWN if call.may_have_run else Outcome.CANCELLED
