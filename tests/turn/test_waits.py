"""Turns that wait for a person, or for somebody outside."""

import pytest

from app.turn import inputs as i
from app.turn.errors import Rejected
from app.turn.ids import CallId
from tests.support.turns import QUOTA, Told, an_answer

ON_CALLS: list[i.CallCommand] = [
    i.ApproveTool(call_id=CallId("A")),
    i.RejectTool(call_id=CallId("A"), reason="too dear"),
    i.GiveToolResult(call_id=CallId("A"), output='"done"'),
    i.GiveToolError(call_id=CallId("A"), code="gone", message="It is not there."),
]


@pytest.mark.parametrize("given", ON_CALLS, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize(
    ("told", "code"),
    [
        (Told(), "turn_not_blocked"),
        (Told().begun(), "turn_not_blocked"),
        (Told().begun().gave_up(QUOTA), "wrong_command"),  # case 19
        (Told().begun().paused(), "wrong_command"),
        (Told().begun().answered(an_answer("done")), "turn_terminal"),
    ],
    ids=lambda told: told.turn.status if isinstance(told, Told) else told,
)
def test_a_command_on_a_call_is_refused_by_the_state_and_changes_nothing(
    told: Told, code: str, given: i.CallCommand
) -> None:
    before = told.turn

    with pytest.raises(Rejected) as refusal:
        told.tell(given)

    assert refusal.value.code == code
    assert told.turn == before
