"""Calls that are with somebody outside when they get their result from somebody else.

Whoever does them is asked to stop, whatever was the reason: a message, a cancellation, a limit, the
end of a wait's time (seed rules AF-24 and AF-106, cases 87 and 111). Like the words for interrupted
calls this is put in at the one way out of `decide`, so that no rule has to think of it.
"""

from collections.abc import Iterable

from app.turn import events as e
from app.turn.ids import CallId
from app.turn.journal import Interruption
from app.turn.state import Turn


def with_cancel_requests(turn: Turn, events: Iterable[e.Event]) -> tuple[e.Event, ...]:
    """The same events; behind calls that were given up a request for each that was outside."""
    outside = {call.call_id: call.tool_name for call in turn.open_calls if call.is_with_others}
    told: list[e.Event] = []
    requests: list[e.Event] = []
    for event in events:
        if isinstance(event, Interruption):
            requests += _request(event.result.call_id, outside)
        else:
            told += requests
            requests.clear()
        if isinstance(event, e.ExternalToolRequested):
            outside[event.call_id] = event.tool_name
        told.append(event)
    return (*told, *requests)


def _request(call_id: CallId, outside: dict[CallId, str]) -> list[e.Event]:
    if call_id not in outside:
        return []
    return [e.ExternalToolCancelRequested(call_id=call_id, tool_name=outside[call_id])]
