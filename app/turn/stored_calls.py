"""Calls as they are stored: under ids that name one call, by names that any provider takes back.

Providers repeat ids, leave them empty or reuse the tool's name. A missing, repeated or previously
used id is replaced before the call is stored, so that a late result cannot match a newer call and
no provider sees an id twice in one history (seed rule AF-71, case 89).

Models invent tools. A name that no tool can have is answered with an error like any other unknown
one, but it is stored in a form that a provider accepts: a history with a name it refuses would
make every later request of the conversation fail.
"""

import re
from collections.abc import Set as AbstractSet
from dataclasses import replace

from app.turn.ids import AttemptId, CallId
from app.turn.transcript import ToolCall

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # the narrowest rule of the wires
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_LONGEST_SHOWN = 200


def as_stored(
    calls: tuple[ToolCall, ...], taken: AbstractSet[str], attempt_id: AttemptId
) -> tuple[ToolCall, ...]:
    """The same calls, each under an id that is neither empty, repeated nor in `taken`.

    A replacement is the attempt's id and the call's index: it says where the call came from. A call
    by a name that no tool can have keeps its place, with the reason why it cannot be run.
    """
    seen: set[str] = set()
    stored: list[ToolCall] = []
    for index, call in enumerate(calls):
        call_id = call.call_id
        if not call_id or call_id in taken or call_id in seen:
            call_id = CallId(f"{attempt_id}-{index}")
        seen.add(call_id)
        stored.append(replace(well_named(call), call_id=call_id))
    return tuple(stored)


def well_named(call: ToolCall) -> ToolCall:
    """The call by a name that every provider takes back, with the problem that it had another."""
    if _NAME.fullmatch(call.tool_name):
        return call
    name = _NOT_OF_A_NAME.sub("_", call.tool_name)[:_LONGEST_NAME] or "unnamed"
    problem = f"There is no tool named {call.tool_name[:_LONGEST_SHOWN]!r}."
    return replace(call, tool_name=name, problem=problem)
