"""The quick way to change a value is the usual one."""

import dataclasses
from typing import Any

import pytest

from app.turn.counters import Counters
from app.turn.replacing import replace
from app.turn.state import Turn
from tests.support.turns import Told

TURN = Told().begun().turn
NAMES = [field.name for field in dataclasses.fields(Turn)]


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_is_changed_as_by_the_standard_library(name: str) -> None:
    before = dataclasses.replace(TURN)
    changes: dict[str, Any] = {name: "changed", "version": 7}

    changed = replace(TURN, **changes)

    assert changed == dataclasses.replace(TURN, **changes)
    assert before == TURN


def test_a_value_stays_frozen() -> None:
    changed = replace(Counters(), steps=1)

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(changed, "steps", 2)  # noqa: B010 - the type checkers know it, too
    assert changed == Counters(steps=1)
    assert hash(changed) == hash(Counters(steps=1))


def test_a_field_that_is_none_is_a_fault_of_ours() -> None:
    unknown: dict[str, Any] = {"stops": 1}

    with pytest.raises(TypeError, match="stops"):
        replace(Counters(), **unknown)
