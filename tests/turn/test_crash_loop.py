"""What counts as progress of a turn whose workers die."""

import pytest

from app.turn.changes import Changes
from app.turn.crash_loop import makes_progress
from app.turn.transcript import Outcome
from tests.support.turns import FLAKY, QUOTA, TOO_LONG, WRITES, Told, a_call, an_answer


def in_tools() -> Told:
    return Told().begun().answered(an_answer("", a_call("A"), a_call("B", WRITES)))


def summing_up() -> Told:
    """A history that was too long is to be summed up; somebody is asked for that."""
    told = Told().begun().gave_up(TOO_LONG).retried(changes=Changes(compact=True))
    return told.begun()


@pytest.mark.parametrize(
    "told",
    [
        Told().begun(),
        Told().begun().lost(),
        Told().begun().wrote("Once"),
        Told().begun().wrote("", "Hm"),
        Told().begun().wrote("Once").lost(),
        summing_up(),
        summing_up().lost(),
        Told().begun().answered(an_answer("", a_call("A"))).lost(),
        Told().begun().queued(),
        Told().begun().queued().withdrawn(),
        Told().begun().cancelled(),
        in_tools().paused(),
    ],
)
def test_a_begin_a_recovery_and_what_only_waits_bring_nothing_new(told: Told) -> None:
    assert told.last
    assert not makes_progress(told.last)


@pytest.mark.parametrize(
    "told",
    [
        in_tools(),
        in_tools().finished("A"),
        in_tools().lost(),
        Told()
        .begun()
        .answered(an_answer("", a_call("A", FLAKY)))
        .finished("A", outcome=Outcome.ERROR),
        Told().begun().gave_up(QUOTA),
        Told().begun().gave_up(QUOTA).posted(),
        summing_up().summed_up(an_answer("They spoke of geese.")),
        Told().begun().crashed(deaths=3),
        Told().begun().answered(an_answer("done")),
    ],
)
def test_a_result_an_answer_a_failure_and_a_pause_do(told: Told) -> None:
    """Also that a call which is not run again is reported: the next attempt begins behind it."""
    assert makes_progress(told.last)
