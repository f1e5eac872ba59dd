"""What a message does to its conversation, told from the events it brings."""

import pytest

from app.turn.effects import Brought, brought
from app.turn.transcript import ToolResult
from tests.support.transitions import STATES
from tests.support.turns import QUOTA, Told


def closed_by_a_message(told: Told) -> tuple[ToolResult, ...]:
    before = told.turn
    found = brought(before, told.posted().last)
    assert found.effect == "REPLAN"
    return found.closes


def test_a_turn_is_opened() -> None:
    assert brought(None, Told().events) == Brought(effect="OPEN")


def test_a_turn_that_waits_for_its_model_goes_on_and_nothing_is_closed() -> None:
    assert closed_by_a_message(Told().begun().gave_up(QUOTA)) == ()


def test_open_calls_are_closed_in_declared_order() -> None:
    told = STATES["PAUSED, a tool is next"]()
    open_calls = [call.call_id for call in told.turn.open_calls]

    assert [result.call_id for result in closed_by_a_message(told)] == open_calls == ["B"]


def test_events_that_no_message_brings_have_no_effect_of_one() -> None:
    told = Told().begun()

    with pytest.raises(ValueError, match="STEP_STARTED"):
        brought(told.turn, told.last)
