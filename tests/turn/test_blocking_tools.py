"""Tools whose error gives up the calls behind them (T49)."""

import pytest

from app.turn.states import CallingModel, Failed
from app.turn.status import Status
from app.turn.transcript import Outcome, ToolResult
from tests.support.turns import BARRING, READS, VITAL, WRITES, Told, a_call, an_answer


def asked(*names: str) -> Told:
    """An answer with calls A, B and so on of these tools."""
    tools = {"check": BARRING, "look_up": READS, "pay": WRITES, "verify": VITAL}
    calls = [a_call(chr(ord("A") + n), tools[name]) for n, name in enumerate(names)]
    return Told().begun().answered(an_answer("", *calls))


def in_flight(told: Told) -> list[str]:
    return [call.call_id for call in told.turn.open_calls if call.in_flight]


def results(told: Told) -> list[tuple[str, str]]:
    said = (told.transcript[place] for place in sorted(told.transcript))
    return [(m.call_id, m.outcome.value) for m in said if isinstance(m, ToolResult)]


def failed_for_good(told: Told, call_id: str) -> Told:
    """The one retry fails too."""
    told.finished(call_id, outcome=Outcome.ERROR)
    if not in_flight(told):
        told.later(minutes=1).begun()
    return told.finished(call_id, outcome=Outcome.ERROR)


def test_what_stands_behind_the_call_begins_when_it_has_ended_well() -> None:
    told = asked("look_up", "check", "pay", "look_up")
    assert in_flight(told) == ["A", "B"]

    told.finished("B")

    assert told.types == ["TOOL_COMPLETED", "TOOL_STARTED", "TOOL_STARTED"]
    assert in_flight(told) == ["A", "C", "D"]


def test_an_error_gives_up_what_stands_behind_it_and_nothing_else() -> None:
    told = failed_for_good(asked("look_up", "check", "pay", "look_up").finished("A"), "B")

    assert told.types == [
        "TOOL_FAILED",
        "TOOL_INTERRUPTED",
        "TOOL_INTERRUPTED",
        "STEP_COMPLETED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]
    assert results(told) == [
        ("A", "completed"),
        ("B", "error"),
        ("C", "not_started"),
        ("D", "not_started"),
    ]
    assert isinstance(told.turn.state, CallingModel)


def test_what_stands_before_it_and_is_in_flight_ends_first() -> None:
    told = asked("look_up", "check", "pay").finished("B", outcome=Outcome.ERROR)
    assert in_flight(told) == ["A"]

    told.finished("A").later(minutes=1).begun().finished("B", outcome=Outcome.ERROR)

    assert results(told) == [("A", "completed"), ("B", "error"), ("C", "not_started")]


def test_a_retry_holds_the_following_calls_back_for_as_long_as_it_waits() -> None:
    told = asked("check", "pay").finished("A", outcome=Outcome.ERROR)
    assert told.turn.status is Status.RETRY_SCHEDULED

    told.later(minutes=1).begun()
    assert in_flight(told) == ["A"]
    told.finished("A")

    assert in_flight(told) == ["B"]


def test_arguments_that_cannot_be_used_are_an_error_of_the_tool_too() -> None:
    answer = an_answer("", a_call("A", BARRING, problem="cut off"), a_call("B", WRITES))

    told = Told().begun().answered(answer)

    assert results(told) == [("A", "error"), ("B", "not_started")]
    assert isinstance(told.turn.state, CallingModel)


def test_case_65_a_call_given_up_after_an_error_stays_so_whoever_takes_over() -> None:
    told = failed_for_good(asked("check", "pay"), "A").lost()

    assert results(told) == [("A", "error"), ("B", "not_started")]
    assert told.turn.counters.tool_calls == 2


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.COMPLETED])
def test_a_lost_round_begins_nothing_behind_the_call(outcome: Outcome) -> None:
    told = asked("check", "pay").lost()
    assert in_flight(told) == ["A"]

    told.finished("A", outcome=outcome)

    assert in_flight(told) == (["B"] if outcome is Outcome.COMPLETED else [])


def test_an_error_that_fails_the_turn_closes_what_is_held_back() -> None:
    told = asked("verify", "check", "pay").finished("A", outcome=Outcome.ERROR).finished("B")

    assert told.turn.state == Failed(reason="tool_failed")
    assert results(told) == [("A", "error"), ("B", "completed"), ("C", "cancelled")]
