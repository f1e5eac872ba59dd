"""A turn that is opened on hold: nothing begins it but a word of somebody."""

from datetime import timedelta

import pytest

from app.turn import inputs as i
from app.turn.actions import actions
from app.turn.agent import Limits
from app.turn.errors import ConversationBusy, Rejected, TurnNotBlocked, TurnTerminal, WrongCommand
from app.turn.ids import FailureId
from app.turn.next_step import CallModel, Rest, next_step
from app.turn.states import Cancelled, ModelDue, Ready
from app.turn.status import Status
from tests.support.turns import QUOTA, Told, a_call, a_message, an_agent, an_answer


def held() -> Told:
    return Told(held=True)


def test_a_turn_on_hold_is_ready_and_nothing_is_next() -> None:
    turn = held().turn

    assert (turn.status, turn.is_held) == (Status.READY, True)
    assert next_step(turn, at=held().at) == Rest()


def test_a_worker_that_begins_a_turn_on_hold_begins_nothing() -> None:
    assert held().begun().last == ()


def test_run_makes_it_ready_like_any_other() -> None:
    told = held().run()

    assert told.types == ["TURN_RESUMED"]
    assert told.turn.state == Ready()
    assert next_step(told.turn, at=told.at) == CallModel()
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


def test_run_is_what_is_offered_first() -> None:
    offered = actions(held().turn, at=held().at)

    assert [(each.command, each.enabled) for each in offered] == [
        ("RUN", True),
        ("PAUSE", True),
        ("CANCEL", True),
        ("MESSAGE", False),
        ("QUEUE", True),
        ("STEER", True),
    ]


def test_run_is_not_offered_while_the_agent_is_not_there() -> None:
    offered = actions(held().turn, at=held().at, agent_is_there=False)

    enabled = [each.command for each in offered if each.enabled]
    assert enabled == ["PAUSE", "CANCEL", "QUEUE", "STEER"]


@pytest.mark.parametrize(
    ("told", "refusal"),
    [
        (Told(), TurnNotBlocked),
        (held().run(), TurnNotBlocked),
        (Told().begun(), TurnNotBlocked),
        (Told().begun().answered(an_answer("", a_call("A"))), TurnNotBlocked),
        (Told().begun().gave_up(QUOTA), WrongCommand),
        (held().paused(), WrongCommand),
        (Told().begun().answered(an_answer("done")), TurnTerminal),
        (held().cancelled(), TurnTerminal),
    ],
    ids=["ready", "run already", "model", "tools", "waits", "paused", "completed", "cancelled"],
)
def test_run_is_for_turns_on_hold_alone(told: Told, refusal: type[Rejected]) -> None:
    with pytest.raises(refusal):
        told.run()


@pytest.mark.parametrize(
    "given",
    [
        i.RetryModel(failure_id=FailureId("f1")),
        i.Retry(),
        i.ContinueNow(),
        i.Resume(),
        i.Replan(message=a_message("no", "m2")),
    ],
)
def test_no_other_command_ends_a_hold(given: i.Request) -> None:
    with pytest.raises(TurnNotBlocked):
        held().tell(given)


def test_a_message_to_a_turn_on_hold_finds_it_busy() -> None:
    with pytest.raises(ConversationBusy):
        held().posted()


def test_a_turn_on_hold_is_cancelled_at_once() -> None:
    told = held().cancelled()

    assert told.types == ["MESSAGE_ADDED", "TURN_CANCELLED"]
    assert told.turn.state == Cancelled()


def test_a_pause_takes_the_place_of_the_hold_and_resume_goes_on() -> None:
    told = held().paused()
    assert told.turn.status == Status.PAUSED
    assert isinstance(next_step(told.turn, at=told.at), Rest)

    assert told.resumed().turn.state == ModelDue()


def test_a_message_goes_on_with_a_turn_that_was_paused_while_on_hold() -> None:
    assert held().paused().posted().turn.state == ModelDue()


@pytest.mark.parametrize("count_waiting", [True, False])
def test_time_on_hold_counts_as_waiting_does(*, count_waiting: bool) -> None:
    limits = Limits(max_duration=timedelta(minutes=10), count_waiting=count_waiting)
    run = Told(an_agent(limits=limits), held=True).later(minutes=10).run().begun()
    paused = Told(an_agent(limits=limits), held=True).later(minutes=5).paused()
    paused.later(minutes=5).resumed().begun()

    expected = Status.BUDGET_EXCEEDED if count_waiting else Status.RUNNING
    assert run.turn.status == paused.turn.status == expected
    assert run.turn.waited == paused.turn.waited == timedelta(minutes=10)


def test_a_turn_that_is_not_on_hold_has_not_waited() -> None:
    told = Told().later(minutes=5).paused().later(minutes=5).resumed()

    assert told.turn.waited == timedelta(minutes=5)
