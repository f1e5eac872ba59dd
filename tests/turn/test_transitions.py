"""The table of the machine is what the core does, and it has every row and column."""

from pathlib import Path
from typing import get_args

from app.turn import inputs as i
from app.turn.states import State
from app.turn.status import Status
from tests.support.transitions import INPUTS, STATES, transitions_page

PAGE = Path(__file__).parent.parent.parent / "docs" / "transitions.md"


def test_the_page_is_what_the_core_says() -> None:
    assert PAGE.read_text() == transitions_page(), "run scripts/transitions and read its diff"


def test_every_state_that_can_rest_has_its_table() -> None:
    shown = {type(make().turn.state) for make in STATES.values()}

    assert {state.__name__ for state in get_args(State)} == {s.__name__ for s in shown}
    assert {make().turn.status for make in STATES.values()} == set(Status)


def test_every_input_has_its_row() -> None:
    told = next(iter(STATES.values()))()
    shown = {type(given(told)) for given in INPUTS.values()}

    assert shown == set(get_args(i.Input))
