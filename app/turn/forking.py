"""What a fork takes of the history of a turn, which may be waiting or at work meanwhile.

Open calls stay with the turn that has asked for them: in the fork they are reported to the model,
never run (T113). That one has done nothing yet is known for certain, since the journal that asked
for it is this service's own (T103); any other is unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.turn.ids import CallId
from app.turn.interruption import WORDS
from app.turn.open_calls import OpenCall
from app.turn.resume_point import Known, NotResumable, ResumePoint, of_ended
from app.turn.state import Turn
from app.turn.transcript import AssistantMessage, Message, Outcome, ToolResult


def forked(turn: Turn, messages: Sequence[Message]) -> tuple[Sequence[Message], ResumePoint]:
    """The history of the fork, and where it goes on.

    Calls at its end are left open, to be reported by what goes on there. Where something was said
    behind them, as when a hook has asked the user before they began, their results are put in.

    Args:
        turn: read after `messages`, so that no call is taken for one that has not begun.
        messages: its history.
    """
    known: Mapping[CallId, Known] = {call.call_id: _known(call) for call in turn.open_calls}
    if messages and not isinstance(messages[-1], AssistantMessage | ToolResult):
        messages = _closed(messages, known)
    point = of_ended(turn, messages)
    if isinstance(point, NotResumable):
        return messages, point
    unanswered = tuple(
        replace(call, outcome=known.get(call.call_id, Outcome.UNKNOWN)) for call in point.unanswered
    )
    return messages, replace(point, unanswered=unanswered)


def _known(call: OpenCall) -> Known:
    return Outcome.UNKNOWN if call.may_have_had_effect else Outcome.NOT_STARTED


def _closed(messages: Sequence[Message], known: Mapping[CallId, Known]) -> Sequence[Message]:
    """The messages, with a result behind the answer that asked for each call that has none."""
    answered = {message.call_id for message in messages if isinstance(message, ToolResult)}
    closed: list[Message] = []
    for message in messages:
        closed.append(message)
        if isinstance(message, AssistantMessage):
            closed += [
                ToolResult(
                    call_id=call.call_id,
                    tool_name=call.tool_name,
                    outcome=known[call.call_id],
                    content=WORDS[known[call.call_id]],
                )
                for call in message.tool_calls
                if call.call_id in known.keys() - answered
            ]
    return closed
