"""What a cancellation makes of open calls: stopped, never begun, or nobody can say."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.ports import StoredTurn
from app.services.deps import Services
from app.turn.states import Cancelled
from app.turn.transcript import InterruptionReason, Outcome

_AT_ONCE = 100
_OF_A_STOP = frozenset({InterruptionReason.TURN_CANCELLED, InterruptionReason.CUT_OFF})
"""A call in flight is cut off by a cancellation as by a pause before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A call that a cancellation gives up."""

    call_id: str
    tool_name: str
    outcome: Outcome | None
    """`None`: it is in flight and has its grace period."""


async def given_up(services: Services, stored: StoredTurn) -> Sequence[GivenUp]:
    """The calls that the cancellation of the turn gives up, in declared order.

    While some are in flight, those; once the turn has ended, all that were stopped.
    """
    turn = stored.turn
    if isinstance(turn.state, Cancelled):
        return await _closed(services, stored)
    return [
        GivenUp(call_id=call.call_id, tool_name=call.tool_name, outcome=None)
        for call in turn.open_calls
        if call.in_flight
    ]


async def _closed(services: Services, stored: StoredTurn) -> Sequence[GivenUp]:
    if stored.closed:
        return [
            GivenUp(call_id=each.call_id, tool_name=each.tool_name, outcome=each.outcome)
            for each in stored.closed
        ]
    found: list[GivenUp] = []
    after, is_all = -1, False
    while not is_all:
        page = await services.turns.interruptions(
            stored.turn.identity.turn_id, after=after, limit=_AT_ONCE
        )
        found += [
            GivenUp(call_id=each.call_id, tool_name=each.tool_name, outcome=each.outcome)
            for each in page
            if each.reason in _OF_A_STOP
        ]
        is_all = len(page) < _AT_ONCE
        after = page[-1].position if page else after
    return found
