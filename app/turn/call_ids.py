"""Call ids that can be trusted to name one call (seed rule AF-71, case 89).

Providers repeat ids, leave them empty or reuse the tool's name. A missing, repeated or previously
used id is replaced before the call is stored, so that a late result cannot match a newer call and
no provider sees an id twice in one history.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from app.turn.ids import AttemptId, CallId
from app.turn.transcript import ToolCall


def with_unique_ids(
    calls: tuple[ToolCall, ...], taken: AbstractSet[str], attempt_id: AttemptId
) -> tuple[ToolCall, ...]:
    """The same calls, each under an id that is neither empty, repeated nor in `taken`.

    A replacement is the attempt's id and the call's index: it says where the call came from.
    """
    seen: set[str] = set()
    unique: list[ToolCall] = []
    for index, call in enumerate(calls):
        call_id = call.call_id
        if not call_id or call_id in taken or call_id in seen:
            call_id = CallId(f"{attempt_id}-{index}")
        seen.add(call_id)
        unique.append(replace(call, call_id=call_id))
    return tuple(unique)
