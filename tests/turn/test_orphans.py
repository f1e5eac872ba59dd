"""Turns whose worker has died: taken over, paused for a person, spoken to, cancelled."""

from collections.abc import Callable

import pytest

from app.turn import inputs as i
from app.turn.agent import Limits, OnCrash
from app.turn.errors import ConversationBusy, TurnNotBlocked
from app.turn.events import StepRecovered, TurnPaused
from app.turn.next_step import RecoverLostStep, next_step
from app.turn.resume_point import NotResumable, Resumable, of_active
from app.turn.states import CallingModel, Paused, RunningTools
from app.turn.status import PauseCause, Status
from app.turn.transcript import UNFINISHED, NoticeMessage, Outcome, ToolResult, UserMessage
from tests.support.turns import (
    IDEMPOTENT,
    READS,
    SHIP,
    VITAL,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
)


def calling(on_crash: OnCrash = "pause") -> Told:
    return Told(an_agent(on_crash=on_crash)).begun()


def three_calls(on_crash: OnCrash = "pause") -> Told:
    calls = (a_call("A", READS), a_call("B", IDEMPOTENT), a_call("C", WRITES))
    return calling(on_crash).answered(an_answer("", *calls))


def one_after_the_other(on_crash: OnCrash = "continue") -> Told:
    """A writing call is in flight; one that reads has not begun, and one is outside."""
    calls = (a_call("A", WRITES), a_call("B", READS), a_call("S", SHIP))
    limits = Limits(parallel_tools=1)
    told = Told(an_agent(on_crash=on_crash, open_waits="together", limits=limits)).begun()
    return told.answered(an_answer("", *calls)).begun()


def outcomes(told: Told) -> dict[str, str]:
    found = [m for m in told.transcript.values() if isinstance(m, ToolResult)]
    return {result.call_id: result.outcome.value for result in found}


def paused(told: Told) -> Paused:
    assert isinstance(told.turn.state, Paused)
    return told.turn.state


# --- Taken over by a worker ----------------------------------------------------------------------


def test_a_turn_whose_worker_died_is_gone_on_with_unless_its_agent_says_otherwise() -> None:
    told = three_calls("continue")
    before = told.turn

    assert told.crashed().last == ()
    assert told.turn == before
    assert isinstance(next_step(told.turn, at=told.at), RecoverLostStep)


@pytest.mark.parametrize("made", [calling, three_calls])
def test_an_agent_whose_crashes_people_look_at_is_paused_by_the_next_worker(
    made: Callable[[], Told],
) -> None:
    told = made().crashed()

    assert told.last == (TurnPaused(cause=PauseCause.CRASH, requested_at=told.at),)
    assert told.turn.status is Status.PAUSED
    assert told.turn.attempt_in_flight is None


def test_a_ready_turn_lost_nothing_and_is_never_paused_for_that() -> None:
    assert Told(an_agent(on_crash="pause")).crashed().last == ()


@pytest.mark.parametrize("deaths", [1, 2])
@pytest.mark.parametrize("made", [Told, Told.begun, three_calls])
def test_fewer_than_three_deaths_are_no_loop(made: Callable[..., Told], deaths: int) -> None:
    told = made(Told()) if made is Told.begun else made()
    cause = PauseCause.CRASH if made is three_calls else None

    told.crashed(deaths=deaths)

    causes = [event.cause for event in told.last if isinstance(event, TurnPaused)]
    assert causes == ([] if cause is None else [cause])


@pytest.mark.parametrize(
    "told",
    [
        Told(),
        Told().begun(),
        three_calls("continue"),
        three_calls(),
        Told().begun().answered(an_answer("", a_call("A"))),
    ],
)
def test_the_third_death_in_a_row_that_brought_nothing_pauses_the_turn(told: Told) -> None:
    told.crashed(deaths=3)

    assert paused(told).cause is PauseCause.CRASH_LOOP


def test_what_is_to_stop_is_stopped_and_not_paused_for_its_crash() -> None:
    assert three_calls().cancelled().crashed(deaths=3).last == ()
    assert three_calls().paused().crashed(deaths=2).last == ()


def test_a_turn_that_is_to_pause_is_paused_where_it_stands_when_its_recovery_kills_workers() -> (
    None
):
    told = three_calls("continue").paused().crashed(deaths=3)

    assert paused(told).cause is PauseCause.CRASH_LOOP
    assert isinstance(paused(told).lost, RunningTools)
    assert not told.turn.pause_requested


def test_a_round_that_fails_the_turn_fails_it_however_often_a_worker_dies() -> None:
    told = calling().answered(an_answer("", a_call("A", VITAL), a_call("B", WRITES)))
    told.tell(
        i.ToolsFinished(
            attempt_id=told.attempt,
            finished=(
                i.FinishedCall(
                    call_id=told.turn.open_calls[0].call_id, outcome=Outcome.ERROR, content="no"
                ),
            ),
            next_attempt_id=told.draw(),
        )
    )

    assert told.crashed(deaths=3).last == ()
    assert told.lost().turn.status is Status.FAILED


def test_a_turn_that_rests_was_lost_by_nobody() -> None:
    assert Told().begun().paused().crashed(deaths=3).last == ()


# --- Resumed by a person -------------------------------------------------------------------------


def test_a_resume_recovers_every_open_call_by_its_rule() -> None:
    told = three_calls().crashed().resumed()
    assert told.turn.status is Status.RUNNING
    assert outcomes(told) == {}

    told.lost()

    recovered = [event for event in told.last if isinstance(event, StepRecovered)]
    rules = [(call.call_id, call.rule) for call in recovered[0].calls]
    assert rules == [("A", "rerun"), ("B", "rerun_idempotent"), ("C", "report")]
    assert recovered[0].cause == "crash"
    assert outcomes(told) == {"C": "unknown"}


def test_a_resume_keeps_the_text_of_the_lost_answer_and_tells_the_model_once() -> None:
    told = calling().wrote("Once upon").crashed().resumed().lost()

    recovered = [event for event in told.last if isinstance(event, StepRecovered)]
    assert (recovered[0].recovery, recovered[0].discard_from) == (
        "RETRY_RESPONSE",
        len("Once upon"),
    )
    assert sum(isinstance(m, NoticeMessage) for m in told.transcript.values()) <= 1


def test_the_dead_worker_reports_nothing_once_its_turn_was_resumed() -> None:
    told = three_calls()
    attempt = told.attempt
    told.crashed().resumed()

    late = i.ToolsFinished(
        attempt_id=attempt,
        finished=(
            i.FinishedCall(
                call_id=told.turn.open_calls[2].call_id, outcome=Outcome.COMPLETED, content="paid"
            ),
        ),
        next_attempt_id=told.draw(),
    )

    assert told.tell(late).last == ()


def test_a_worker_that_dies_before_the_recovery_leaves_it_to_a_person_again() -> None:
    told = three_calls().crashed().resumed().crashed()
    assert paused(told).cause is PauseCause.CRASH

    assert isinstance(told.resumed().turn.state, RunningTools)
    assert isinstance(calling().crashed().resumed().crashed().resumed().turn.state, CallingModel)


def test_a_message_to_a_turn_paused_for_its_crash_gives_up_what_is_open() -> None:
    told = three_calls().crashed().posted()

    assert outcomes(told) == {"A": "unknown", "B": "unknown", "C": "unknown"}
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (calling, "CALL_MODEL"),
        (lambda: calling().wrote("Once"), "RETRY_RESPONSE"),
        (three_calls, "RECOVER_TOOLS"),
    ],
)
def test_the_resume_point_is_the_same_before_and_behind_the_pause(
    made: Callable[[], Told], kind: str
) -> None:
    told = made()
    orphaned = of_active(told.turn, an_agent(), is_lost=True)

    assert isinstance(orphaned, Resumable)
    assert orphaned.kind == kind
    assert of_active(told.crashed().turn, an_agent(), is_lost=False) == orphaned


def test_an_orphan_that_is_to_end_is_no_place_to_resume_at() -> None:
    for told in (three_calls().cancelled(), calling().cancelled()):
        assert of_active(told.turn, an_agent(), is_lost=True) == NotResumable(reason="running")


def test_a_resume_of_an_orphan_says_so_in_the_journal_and_recovers_as_behind_a_pause() -> None:
    told = three_calls().tell(i.Resume(is_orphaned=True))

    assert told.types == ["TURN_PAUSED", "TURN_RESUMED"]
    assert told.lost().types[:2] == ["STEP_RECOVERED", "TOOL_INTERRUPTED"]


def test_a_resume_of_a_turn_that_is_not_orphaned_is_refused() -> None:
    with pytest.raises(TurnNotBlocked):
        three_calls().resumed()


# --- What a step was lost to ---------------------------------------------------------------------


def test_a_shutdown_is_told_apart_from_a_crash_until_a_step_has_ended() -> None:
    told = Told().begun()
    left = i.StepLost(attempt_id=told.attempt, next_attempt_id=told.draw(), cause="shutdown")

    assert told.tell(left).turn.lost_to == "shutdown"
    assert told.answered(an_answer("done")).turn.lost_to is None
    assert Told().begun().lost().turn.lost_to == "crash"


def test_a_crash_stays_one_when_a_person_has_resumed_the_turn() -> None:
    told = three_calls().crashed().resumed()
    left = i.StepLost(attempt_id=told.attempt, next_attempt_id=told.draw(), cause="shutdown")

    assert told.tell(left).turn.lost_to == "crash"


# --- A message, T10a -----------------------------------------------------------------------------


def test_a_message_to_an_orphan_closes_every_open_call_and_runs_none() -> None:
    told = one_after_the_other().orphan_told()

    assert outcomes(told) == {"A": "unknown", "B": "not_started", "S": "unknown"}
    assert told.types == [
        "STEP_RECOVERED",
        "TOOL_INTERRUPTED",
        "TOOL_INTERRUPTED",
        "TOOL_INTERRUPTED",
        "EXTERNAL_TOOL_CANCEL_REQUESTED",
        "MESSAGE_ADDED",
        "TURN_RESUMED",
    ]
    last = told.transcript[told.turn.next_position - 1]
    assert isinstance(last, UserMessage)
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


@pytest.mark.parametrize(
    "told",
    [
        Told().begun().wrote("Once upon", "Hm").orphan_told(),
        calling().wrote("Once upon", "Hm").crashed().posted(),
        calling().wrote("Once upon", "Hm").crashed(deaths=3).posted(),
    ],
)
def test_a_message_keeps_the_text_of_a_lost_answer_as_a_partial_message(told: Told) -> None:
    assert told.types == ["STEP_RECOVERED", "MODEL_STOPPED", "MESSAGE_ADDED", "TURN_RESUMED"]
    assert isinstance(told.last[0], StepRecovered)
    assert told.last[0].discard_from == len("Once upon")
    (partial,) = told.partial
    assert (partial.text, partial.reasoning, partial.error) == ("Once upon", "Hm", UNFINISHED)
    assert isinstance(told.transcript[told.turn.next_position - 1], UserMessage)
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


@pytest.mark.parametrize("lost", [i.NOTHING_WRITTEN, i.LostAnswer(text="Once")])
def test_text_of_a_lost_answer_that_is_not_all_at_hand_is_withdrawn(lost: i.LostAnswer) -> None:
    message = a_message("no", "m2")
    orphan = i.PostMessage(message=message, is_orphaned=True, lost=lost)
    replan = i.Replan(message=message, lost=lost)
    for told in (
        calling().wrote("Once upon").tell(orphan),
        calling().wrote("Once upon").crashed().tell(replan),
    ):
        assert told.types == ["STEP_RECOVERED", "MESSAGE_ADDED", "TURN_RESUMED"]
        assert isinstance(told.last[0], StepRecovered)
        assert told.last[0].discard_from == 0
        assert told.partial == []


def test_what_the_gone_worker_reports_behind_the_message_is_nothing_new() -> None:
    told = one_after_the_other()
    attempt = told.attempt
    told.orphan_told()
    late = i.StepLost(attempt_id=attempt, next_attempt_id=told.draw())

    assert told.tell(late).last == ()


def test_with_recovery_first_the_message_waits_for_the_turns_end() -> None:
    told = one_after_the_other()

    told.tell(i.PostMessage(message=a_message("and?", "m2"), is_orphaned=True, recover_first=True))

    assert told.types == ["INPUT_QUEUED"]
    assert outcomes(told) == {}


@pytest.mark.parametrize("told", [Told(), Told().begun().cancelled(), three_calls().cancelled()])
def test_a_turn_that_is_not_going_on_by_itself_takes_no_message(told: Told) -> None:
    """READY: nobody's work was lost. With its cancellation asked for: it ends."""
    with pytest.raises(ConversationBusy):
        told.orphan_told()


def test_recovery_first_says_nothing_to_a_turn_with_a_worker() -> None:
    with pytest.raises(ConversationBusy):
        Told().begun().tell(i.PostMessage(message=a_message("and?", "m2"), recover_first=True))


# --- A cancellation ------------------------------------------------------------------------------


def test_an_orphan_is_cancelled_at_once() -> None:
    told = one_after_the_other().tell(i.Cancel(is_orphaned=True))

    assert told.turn.status is Status.CANCELLED
    assert outcomes(told) == {"A": "unknown", "B": "cancelled", "S": "unknown"}


def test_an_orphan_whose_cancellation_was_asked_for_is_cancelled_at_once_as_well() -> None:
    told = Told().begun().cancelled().tell(i.Cancel(is_orphaned=True))

    assert told.types == ["STEP_COMPLETED", "MESSAGE_ADDED", "TURN_CANCELLED"]
