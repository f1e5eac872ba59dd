"""What a fork takes of a turn whose calls are open: they stay with the turn, and are reported."""

import json

import pytest

from app.providers.strict_history import check_history
from app.store.message_codec import encode
from app.turn.forking import forked
from app.turn.requestable import heard, requestable
from app.turn.resume_point import Resumable
from app.turn.transcript import Message, Outcome, ToolResult
from tests.support.calls_that_wait import together
from tests.support.transitions import STATES
from tests.support.turns import REFUND, SHIP, WRITES, Told, a_call


def history_of(told: Told) -> list[Message]:
    return [told.transcript[place] for place in sorted(told.transcript)]


def told_of(told: Told) -> dict[str, Outcome]:
    """What the fork's model is told of each call that is open."""
    history, point = forked(told.turn, history_of(told))
    calls = point.unanswered if isinstance(point, Resumable) else ()
    results = [message for message in history if isinstance(message, ToolResult)]
    open_ids = {call.call_id for call in told.turn.open_calls}
    known = [(result.call_id, result.outcome) for result in results if result.call_id in open_ids]
    return dict([*known, *((call.call_id, call.outcome) for call in calls)])


def test_calls_that_were_not_begun_are_told_from_those_that_may_have_run() -> None:
    told = together(a_call("A", REFUND), a_call("B", SHIP), a_call("C", WRITES))

    _, point = forked(told.turn, history_of(told))

    assert isinstance(point, Resumable)
    assert [(call.call_id, call.rule, call.outcome) for call in point.unanswered] == [
        ("A", "report", Outcome.NOT_STARTED),
        ("B", "report", Outcome.UNKNOWN),
        ("C", "report", Outcome.UNKNOWN),
    ]


@pytest.mark.parametrize("state", STATES)
def test_every_open_call_is_reported_and_no_surer_than_the_turn_is(state: str) -> None:
    told = STATES[state]()

    assert told_of(told) == {
        call.call_id: Outcome.UNKNOWN if call.may_have_had_effect else Outcome.NOT_STARTED
        for call in told.turn.open_calls
    }


@pytest.mark.parametrize("state", STATES)
def test_a_fork_says_all_that_its_turn_has_said(state: str) -> None:
    told = STATES[state]()
    history, point = forked(told.turn, history_of(told))
    if not isinstance(point, Resumable):
        return

    results = [
        ToolResult(
            call_id=call.call_id, tool_name=call.tool_name, outcome=call.outcome, content="-"
        )
        for call in point.unanswered
    ]
    whole = [*history, *results]
    kept = requestable(whole)

    bodies = [json.loads(encode(message).body) for message in kept]
    sent = [bodies[place] for place in heard([message.role for message in kept])]
    assert len(kept) == len(whole), "nothing is damaged, so nothing is left out"
    assert check_history([*sent, {"role": "user", "content": "Go on."}]) is None
