"""Messages that wait: for the turn's end, or for its next boundary (T8, T9)."""

from dataclasses import replace

import pytest

from app.turn import inputs as i
from app.turn.actions import actions
from app.turn.agent import Limits, RetryPolicy
from app.turn.decide_queue import MOST_CHARACTERS_QUEUED, MOST_QUEUED
from app.turn.errors import ConversationBusy, QueuedInputNotFound, TurnTerminal
from app.turn.events import StepRecovered
from app.turn.start import succeed
from app.turn.state import Turn
from app.turn.status import Status
from app.turn.transcript import Outcome, StopReason, ToolResult, UserMessage
from tests.support.turns import (
    FITS,
    MISFITS,
    NOON,
    OVERLOADED,
    QUOTA,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
)


def a_round(*, at_once: int = 1) -> Told:
    """Three calls, the first of which is in flight, or all of them."""
    told = Told(an_agent(limits=Limits(parallel_tools=at_once))).begun()
    return told.answered(an_answer("", a_call("A"), a_call("B", WRITES), a_call("C")))


def outcomes(told: Told) -> list[tuple[str, Outcome]]:
    """Of every call, in their places."""
    places = sorted(told.transcript.items())
    return [(m.call_id, m.outcome) for _, m in places if isinstance(m, ToolResult)]


def waiting(turn: Turn) -> list[str]:
    return [queued.message.message_id for queued in turn.queue]


# --- Queue ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told", [Told(), Told().begun(), a_round()], ids=["ready", "model", "tool"]
)
def test_a_queued_message_waits_and_nothing_else_changes(told: Told) -> None:
    before = told.turn

    told.queued()

    assert told.types == ["INPUT_QUEUED"]
    assert told.turn.state == before.state
    assert waiting(told.turn) == ["m2"]


def test_case_93_a_queued_message_opens_the_next_turn() -> None:
    ended = Told().begun().queued().answered(an_answer("done"))
    assert ended.types[-1] == "TURN_COMPLETED"

    following = ended.succeeded()

    assert following.types == ["TURN_STARTED", "INPUT_PROMOTED", "MESSAGE_ADDED"]
    assert following.turn.status is Status.READY
    assert following.transcript == {ended.turn.next_position: a_message("and then?", "m2")}
    assert following.turn.queue == ()


def test_the_queue_is_inherited_over_several_turns_in_order() -> None:
    told = Told().begun().queued("1", "q1").queued("2", "q2").steered("3", "q3").cancelled()
    told = told.answered(an_answer("too late"))
    said: list[str] = []
    while told.turn.queue:
        told = told.succeeded()
        said += [m.message_id for m in told.transcript.values() if m.role == "user"]
        told.cancelled()

    assert said == ["q1", "q2", "q3"]


def test_a_turn_without_a_queue_opens_no_other() -> None:
    ended = Told().cancelled().turn

    assert succeed(ended, ended.identity, at=NOON) == ()


def test_a_turn_is_never_as_old_as_the_one_before_it() -> None:
    ended = Told().queued().cancelled()

    following = ended.succeeded()  # at the very same moment

    assert following.turn.created_at > ended.turn.created_at


@pytest.mark.parametrize("mode", ["queue", "steer"])
def test_a_full_queue_takes_no_more(mode: str) -> None:
    told = Told().begun()
    for n in range(MOST_QUEUED):
        told.queued("q", f"q{n}")

    with pytest.raises(ConversationBusy, match="20 messages"):
        told.queued() if mode == "queue" else told.steered()


def test_a_queue_holds_so_many_characters_and_a_short_message_may_still_fit() -> None:
    half = "x" * (MOST_CHARACTERS_QUEUED // 2)
    told = Told().begun().queued(half, "q1")

    with pytest.raises(ConversationBusy, match="400000 characters"):
        told.queued(half + "x", "q2")
    told.queued(half, "q3")
    with pytest.raises(ConversationBusy):
        told.queued("x", "q4")
    assert [a.enabled for a in actions(told.turn, at=told.at) if a.command == "QUEUE"] == [False]


def test_a_queued_message_stays_queued_while_the_turn_waits() -> None:
    told = Told().begun().queued().gave_up(QUOTA).posted("try again", "m3")

    assert told.transcript[1] == a_message("try again", "m3")
    assert waiting(told.turn) == ["m2"]
    assert told.begun().turn.status is Status.RUNNING


def test_a_withdrawn_message_is_gone() -> None:
    told = Told().begun().queued("1", "q1").queued("2", "q2").withdrawn("q1")

    assert told.types == ["INPUT_WITHDRAWN"]
    assert waiting(told.turn) == ["q2"]
    with pytest.raises(QueuedInputNotFound):
        told.withdrawn("q1")


def test_a_message_that_was_said_cannot_be_withdrawn() -> None:
    told = Told().steered().begun()

    with pytest.raises(QueuedInputNotFound):
        told.withdrawn()


def test_nothing_is_withdrawn_from_an_ended_turn() -> None:
    with pytest.raises(TurnTerminal):
        Told().begun().queued().answered(an_answer("done")).withdrawn()


# --- Steer ---------------------------------------------------------------------------------------


def test_a_message_that_steers_a_ready_turn_is_heard_before_its_first_call() -> None:
    told = Told().steered().begun()

    assert told.types == ["INPUT_PROMOTED", "MESSAGE_ADDED", "STEP_STARTED", "MODEL_STARTED"]
    assert told.transcript[1] == a_message("no, this", "m2")


def test_case_91_calls_that_had_not_begun_are_superseded_and_the_message_follows() -> None:
    told = a_round().steered().finished("A")

    assert outcomes(told) == [
        ("A", Outcome.COMPLETED),
        ("B", Outcome.SUPERSEDED),
        ("C", Outcome.SUPERSEDED),
    ]
    assert told.types == [
        "TOOL_COMPLETED",
        "STEP_COMPLETED",
        "TOOL_SKIPPED",
        "TOOL_SKIPPED",
        "INPUT_PROMOTED",
        "MESSAGE_ADDED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]
    assert told.transcript[5] == a_message("no, this", "m2")


def test_case_92_calls_in_flight_end_first_and_no_other_begins() -> None:
    told = a_round(at_once=2).steered()

    told.finished("A")
    assert told.types == ["TOOL_COMPLETED"]

    told.finished("B")
    assert outcomes(told)[-1] == ("C", Outcome.SUPERSEDED)
    assert told.types[-1] == "MODEL_STARTED"


def test_calls_that_come_with_the_answer_are_not_begun_over_a_message_that_steers() -> None:
    told = Told().begun().steered().answered(an_answer("", a_call("A"), a_call("B")))

    assert outcomes(told) == [("A", Outcome.SUPERSEDED), ("B", Outcome.SUPERSEDED)]
    assert "TOOL_STARTED" not in told.types
    assert told.types[-1] == "MODEL_STARTED"


def test_an_answer_over_a_message_that_steers_is_kept_and_the_model_goes_on() -> None:
    told = Told().begun().steered("1", "s1").steered("2", "s2").answered(an_answer("done"))

    assert told.types[-6:] == [
        "INPUT_PROMOTED",
        "MESSAGE_ADDED",
        "INPUT_PROMOTED",
        "MESSAGE_ADDED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]
    assert [m.role for m in told.transcript.values()] == ["user", "assistant", "user", "user"]


@pytest.mark.parametrize("output", [FITS, MISFITS], ids=["fits", "misfits"])
def test_an_answer_over_a_message_that_steers_is_no_output_and_needs_no_repair(
    output: i.ValidOutput | i.InvalidOutput,
) -> None:
    told = Told().begun().steered().answered(an_answer("{}"), output=output)

    assert [m.role for m in told.transcript.values()] == ["user", "assistant", "user"]
    assert "OUTPUT_READY" not in told.types
    assert told.answered(an_answer("{}"), output=FITS).turn.output is not None


@pytest.mark.parametrize("limits", [Limits(max_iterations=1), Limits(max_steps=1)])
def test_where_a_limit_allows_no_more_the_answer_ends_the_turn(limits: Limits) -> None:
    told = Told(an_agent(limits=limits)).begun().steered().answered(an_answer("done"))

    assert told.turn.status is Status.COMPLETED
    assert told.succeeded().transcript == {2: a_message("no, this", "m2")}


def test_a_limit_in_mid_turn_leaves_the_message_to_the_next_turn() -> None:
    limits = Limits(max_iterations=1)
    told = Told(an_agent(limits=limits)).begun().steered().answered(an_answer("", a_call("A")))

    assert told.turn.status is Status.MAX_ITERATIONS_REACHED
    assert waiting(told.turn) == ["m2"]


@pytest.mark.parametrize("stop", [StopReason.REFUSAL, StopReason.MAX_OUTPUT, StopReason.OTHER])
def test_an_answer_that_was_stopped_ends_the_turn_as_ever(stop: StopReason) -> None:
    told = Told().begun().steered().answered(an_answer("half", stop=stop))

    assert told.turn.status is Status.COMPLETED
    assert waiting(told.turn) == ["m2"]


def test_a_message_that_steers_waits_while_the_turn_waits_and_is_heard_when_it_goes_on() -> None:
    told = Told().begun().steered().gave_up(QUOTA)
    assert waiting(told.turn) == ["m2"]

    told.retried().begun()

    assert told.types[:2] == ["INPUT_PROMOTED", "MESSAGE_ADDED"]


def test_hearing_a_message_begins_a_new_chain_of_retries() -> None:
    told = Told(an_agent(retry=RetryPolicy(max_retries=1))).begun().gave_up(OVERLOADED)
    told.later(minutes=2).begun().steered().lost()

    assert told.turn.counters.consecutive_retries == 0
    assert told.turn.counters.retries == 1


def test_a_turn_that_is_about_to_be_cancelled_is_not_steered_but_takes_a_queue() -> None:
    told = Told().begun().cancelled()

    with pytest.raises(ConversationBusy, match="cancelled"):
        told.steered()
    assert told.queued().types == ["INPUT_QUEUED"]


def test_with_a_message_that_steers_lost_calls_are_reported_and_none_is_run_again() -> None:
    told = a_round(at_once=2).steered().lost()

    assert outcomes(told) == [
        ("A", Outcome.UNKNOWN),
        ("B", Outcome.UNKNOWN),
        ("C", Outcome.SUPERSEDED),
    ]
    recovered = told.last[0]
    assert isinstance(recovered, StepRecovered)
    assert [call.rule for call in recovered.calls] == ["report", "report", "run"]
    assert told.types[-1] == "MODEL_STARTED"


def test_a_question_of_a_tool_is_asked_behind_the_message_that_steers() -> None:
    told = a_round().steered().finished("A", question="where to?")

    assert told.turn.status is Status.WAITING_FOR_USER
    assert [m.role for m in told.transcript.values()][-2:] == ["user", "question"]
    assert waiting(told.turn) == []
    assert told.posted("Tokyo", "m3").begun().types == ["STEP_STARTED", "MODEL_STARTED"]


def test_a_message_that_steers_waits_behind_a_question_and_follows_the_answer() -> None:
    told = Told().begun().steered().asked().posted("Tokyo", "m3").begun()

    said = [m.message_id for m in told.transcript.values() if isinstance(m, UserMessage)]
    assert said == ["m1", "m3", "m2"]


def test_where_there_are_hooks_they_hear_of_the_message_before_anything_is_begun() -> None:
    told = Told(replace(an_agent(), has_hooks=True)).begun().steered()

    told.answered(an_answer("Done."))

    assert told.types[-3:] == ["STEP_COMPLETED", "INPUT_PROMOTED", "MESSAGE_ADDED"]
    assert told.turn.unread == (2,)
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


def test_a_pause_comes_before_the_message_and_the_message_before_the_calls() -> None:
    told = a_round().steered().paused().finished("A")
    assert told.turn.status is Status.PAUSED

    told.resumed().begun()

    assert told.types[:2] == ["TOOL_SKIPPED", "TOOL_SKIPPED"]
    assert told.transcript[5] == a_message("no, this", "m2")
