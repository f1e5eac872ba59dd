"""A history that is too long: summed up once, and never at the cost of what there was."""

from dataclasses import replace

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent, Limits
from app.turn.changes import Changes
from app.turn.failures import ModelFailure, RequestRefused, TokenLimitPhase
from app.turn.ids import AttemptId, FailureId
from app.turn.states import CallingModel, Compacting
from app.turn.status import Status
from app.turn.transcript import ModelAnswer, StopReason, Usage
from tests.support.turns import (
    LONG_AGO,
    OVERLOADED,
    QUOTA,
    REFUSED,
    TOO_LONG,
    Told,
    a_call,
    an_agent,
    an_answer,
)

COMPACT = Changes(compact=True)
SUMMARY = an_answer("They spoke of the harbour.", usage=Usage(input_tokens=50, output_tokens=7))
USELESS = [
    ("empty", an_answer(" \n")),
    ("malformed", an_answer("They", stop=StopReason.MAX_OUTPUT)),
    ("malformed", an_answer("No.", stop=StopReason.REFUSAL)),
    ("malformed", an_answer("They spoke.", a_call("A"))),
    ("malformed", an_answer("They spoke.", stop=StopReason.OTHER)),
    ("not_smaller", an_answer("x" * 4_000)),
    ("model_failed", TOO_LONG),
    ("model_failed", QUOTA),
    ("model_failed", OVERLOADED),
    ("model_failed", REFUSED),
    ("model_failed", None),
]


def too_long(agent: Agent | None = None) -> Told:
    """A turn whose first request was too long, with a history before it."""
    told = Told(agent or an_agent(), first_position=10).begun()
    return told.gave_up(TOO_LONG, can_compact=True)


def failures(told: Told) -> list[str]:
    return [event.record.failure_id for event in told.events if isinstance(event, e.ModelFailed)]


def test_the_history_is_summed_up_and_the_model_asked_again() -> None:
    told = too_long()
    assert isinstance(told.turn.state, Compacting)
    assert told.types == ["MODEL_FAILED", "STEP_COMPLETED", "STEP_STARTED", "COMPACTION_STARTED"]

    told.summed_up(SUMMARY)
    assert told.last[0] == e.ContextCompacted(
        attempt_id=AttemptId("a2"),
        first=0,
        last=9,
        summary="They spoke of the harbour.",
        replaced_tokens=1_000,
        summary_tokens=7,
        usage=SUMMARY.usage,
    )
    assert told.types[1:] == ["STEP_COMPLETED", "STEP_STARTED", "MODEL_STARTED"]

    told.answered(an_answer("Good.", usage=Usage(input_tokens=1, output_tokens=1)))
    assert told.turn.status is Status.COMPLETED
    assert told.turn.usage == Usage(input_tokens=51, output_tokens=8)
    assert told.turn.counters.model_attempts == 3


@pytest.mark.parametrize(("why", "ending"), USELESS)
def test_case_147_without_a_good_summary_the_turn_waits_with_the_failure_that_it_had(
    why: str, ending: ModelAnswer | ModelFailure | RequestRefused | None
) -> None:
    told = too_long().summed_up(ending)

    failure = told.turn.current_failure
    assert told.turn.status is Status.WAITING_FOR_MODEL
    assert failure is not None
    assert (failure.failure_id, failure.failure) == ("f1", TOO_LONG)
    assert told.types == ["COMPACTION_FAILED", "STEP_COMPLETED", "TURN_SUSPENDED"]
    assert isinstance(told.last[0], e.CompactionFailed)
    assert told.last[0].reason == why
    assert failures(told) == ["f1"]


def test_a_summary_exactly_as_large_as_what_it_replaces_is_not_smaller() -> None:
    ten = i.Replaced(first=0, last=9, tokens=10)

    assert too_long().summed_up(an_answer("x" * 40), replaced=ten).types[0] == "COMPACTION_FAILED"
    assert too_long().summed_up(an_answer("x" * 36), replaced=ten).types[0] == "CONTEXT_COMPACTED"


def test_a_request_that_is_still_too_long_behind_a_summary_waits_and_is_not_summed_up_again() -> (
    None
):
    told = too_long().summed_up(SUMMARY)
    told.gave_up(TOO_LONG, failure_id="f2", can_compact=True)

    assert told.turn.status is Status.WAITING_FOR_MODEL
    assert told.turn.current_failure is not None
    assert told.turn.current_failure.failure_id == "f2"


def test_scenario_095_each_retry_costs_two_calls_at_most_and_gives_a_new_id() -> None:
    told = too_long().summed_up(TOO_LONG)
    assert told.turn.counters.model_attempts == 2

    for n in range(2, 7):
        before = told.turn.counters.model_attempts
        told.retried(f"f{n - 1}").begun()
        told.gave_up(TOO_LONG, failure_id=f"f{n}", can_compact=True).summed_up(TOO_LONG)

        assert told.turn.status is Status.WAITING_FOR_MODEL
        assert told.turn.current_failure is not None
        assert told.turn.current_failure.failure_id == f"f{n}"
        assert told.turn.counters.model_attempts == before + 2


def test_behind_an_answer_the_history_may_be_summed_up_again() -> None:
    told = too_long().summed_up(SUMMARY).answered(an_answer("", a_call("A"))).finished("A")
    told.gave_up(TOO_LONG, failure_id="f2", can_compact=True)

    assert isinstance(told.turn.state, Compacting)


@pytest.mark.parametrize(
    ("failure", "text", "can_compact"),
    [
        (TOO_LONG, "", False),
        (TOO_LONG, "Once upon", True),
        (replace(TOO_LONG, token_limit_phase=TokenLimitPhase.OUTPUT), "", True),
        (QUOTA, "", True),
    ],
    ids=["nothing before", "behind the first word", "the answer is too long", "no token limit"],
)
def test_nothing_is_summed_up_where_that_would_not_help(
    failure: ModelFailure, text: str, *, can_compact: bool
) -> None:
    told = Told(first_position=10).begun().gave_up(failure, text=text, can_compact=can_compact)

    assert told.turn.status is Status.WAITING_FOR_MODEL


def test_an_agent_may_wait_or_fail_instead() -> None:
    waits = too_long(replace(an_agent(), on_context_full="wait"))
    fails = too_long(replace(an_agent(), on_context_full="fail"))

    assert waits.turn.status is Status.WAITING_FOR_MODEL
    assert fails.turn.status is Status.FAILED
    assert fails.types[-2:] == ["MESSAGE_ADDED", "TURN_FAILED"]


def test_an_agent_that_does_not_wait_tries_a_summary_first() -> None:
    told = too_long(an_agent(on_model_failure="fail"))

    assert isinstance(told.turn.state, Compacting)
    assert told.summed_up(OVERLOADED).turn.status is Status.FAILED


def test_a_window_that_an_answer_has_filled_is_a_reason_too() -> None:
    told = Told(first_position=10).begun()
    told.tell(
        i.ModelAnswered(
            attempt_id=told.attempt,
            answer=an_answer("", stop=StopReason.CONTEXT_FULL),
            next_attempt_id=told.draw(),
            failure_id=FailureId("f9"),
            can_compact=True,
        )
    )

    assert isinstance(told.turn.state, Compacting)


def test_somebody_asks_for_a_summary_whatever_the_policy() -> None:
    told = too_long(replace(an_agent(), on_context_full="wait")).retried(changes=COMPACT).begun()
    assert isinstance(told.turn.state, Compacting)

    assert isinstance(told.summed_up(SUMMARY).turn.state, CallingModel)


def test_what_came_to_nothing_for_somebody_is_a_failure_of_its_own() -> None:
    told = too_long(replace(an_agent(), on_context_full="wait")).retried(changes=COMPACT).begun()
    told.summed_up(OVERLOADED, failure_id="f8")

    failure = told.turn.current_failure
    assert failure is not None
    assert (failure.failure_id, failure.failure) == ("f8", TOO_LONG)
    assert failures(told) == ["f1", "f8"]


def test_where_there_is_nothing_to_sum_up_the_model_is_asked_all_the_same() -> None:
    told = Told().begun().gave_up(TOO_LONG).retried(changes=COMPACT).begun()
    told.summed_up(None, replaced=None)

    assert isinstance(told.turn.state, CallingModel)
    assert told.types == ["COMPACTION_FAILED", "STEP_COMPLETED", "STEP_STARTED", "MODEL_STARTED"]


def test_a_summary_that_was_lost_is_asked_for_again_and_nothing_else_is_lost() -> None:
    told = too_long().lost()
    assert told.types == ["STEP_RECOVERED", "STEP_STARTED", "COMPACTION_STARTED"]

    told.summed_up(SUMMARY)
    assert isinstance(told.turn.state, CallingModel)


def test_a_cancellation_beats_a_summary_and_what_it_has_cost_is_counted() -> None:
    told = too_long().cancelled().summed_up(SUMMARY)

    assert told.turn.status is Status.CANCELLED
    assert told.turn.usage == SUMMARY.usage
    assert "CONTEXT_COMPACTED" not in told.types


def test_a_pause_drops_a_summary_and_the_model_is_asked_when_the_turn_goes_on() -> None:
    told = too_long().paused()
    told.tell(i.StepAbandoned(attempt_id=told.attempt))
    assert told.turn.status is Status.PAUSED
    assert told.types == ["STEP_COMPLETED", "TURN_PAUSED"]

    told.resumed().begun()
    assert isinstance(told.turn.state, CallingModel)
    assert isinstance(
        told.gave_up(TOO_LONG, failure_id="f2", can_compact=True).turn.state, Compacting
    )


def test_a_late_summary_changes_nothing() -> None:
    told = too_long()
    stale = i.CompactionEnded(
        attempt_id=told.attempt,
        replaced=LONG_AGO,
        ending=SUMMARY,
        next_attempt_id=told.draw(),
        failure_id=FailureId("f9"),
    )

    assert told.lost().tell(stale).last == ()


def test_a_summary_that_comes_over_a_pause_is_kept_and_the_turn_pauses() -> None:
    told = too_long().paused().summed_up(SUMMARY)

    assert told.types == ["CONTEXT_COMPACTED", "STEP_COMPLETED", "TURN_PAUSED"]


def test_what_a_summary_costs_counts_against_the_budget() -> None:
    told = too_long(replace(an_agent(), limits=Limits(max_input_tokens=40))).summed_up(SUMMARY)

    assert told.turn.status is Status.BUDGET_EXCEEDED
    assert told.types[0] == "CONTEXT_COMPACTED"
