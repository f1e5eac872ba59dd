"""Calls that were begun and whose end nobody knows: the rules and the probes (C1, C2, T104)."""

from dataclasses import replace

import pytest

from app.turn import events as e
from app.turn.agent import Agent, Effect, OnUnknown, ToolSpec
from app.turn.lost_calls import FoundDone
from app.turn.lost_tools import fates
from app.turn.resume_point import Resumable, of_active
from app.turn.states import ModelDue
from app.turn.status import Status
from app.turn.transcript import InterruptionReason, Outcome, ToolResult
from tests.support.calls_that_wait import asked_for, together
from tests.support.lost import begun_again, reasons, results, rules
from tests.support.turns import (
    BARRING,
    CHARGE,
    COUNT,
    FLAKY,
    IDEMPOTENT,
    MAIL,
    READS,
    REFUND,
    WIRE,
    WRITES,
    Told,
    a_call,
    an_agent,
    an_answer,
)


def agent_with(*tools: ToolSpec, never_replay: bool = False) -> Agent:
    return replace(an_agent(), tools=tools, never_replay=never_replay)


# --- The rules -----------------------------------------------------------------------------------


def test_case_57_a_death_before_the_answer_is_stored_asks_the_model_again() -> None:
    told = Told().begun().lost()

    assert told.types == ["STEP_RECOVERED", "STEP_STARTED", "MODEL_STARTED"]


@pytest.mark.parametrize("rule", OnUnknown)
def test_case_58_a_call_that_never_began_runs_under_every_rule(rule: OnUnknown) -> None:
    effect = Effect.READS if rule in {"rerun", "rerun_idempotent"} else Effect.WRITES
    spec = replace(WRITES, effect=effect, on_unknown=rule)
    agent = agent_with(READS, spec, never_replay=True)
    agent = replace(agent, limits=replace(agent.limits, parallel_tools=1))
    told = asked_for(a_call("A"), a_call("B", spec), agent=agent).lost()

    assert rules(told)["B"] == "run"
    assert results(told) == {"A": Outcome.UNKNOWN}
    assert begun_again(told) == {"B": 1}


def test_case_59_a_writing_call_is_reported_and_not_run_again() -> None:
    told = asked_for(a_call("A", WRITES)).lost()

    assert rules(told) == {"A": "report"}
    assert results(told) == {"A": Outcome.UNKNOWN}
    assert told.types[-1] == "MODEL_STARTED"


def test_case_60_an_idempotent_call_is_made_again_as_its_second_attempt() -> None:
    told = asked_for(a_call("A", IDEMPOTENT)).lost()

    assert rules(told) == {"A": "rerun_idempotent"}
    assert begun_again(told) == {"A": 2}


def test_case_61_an_interrupted_call_takes_later_ones_with_it_even_those_that_only_read() -> None:
    told = asked_for(a_call("A", MAIL), a_call("B"), a_call("C", FLAKY)).lost()

    assert rules(told) == {"A": "interrupt", "B": "interrupt", "C": "interrupt"}
    assert results(told) == dict.fromkeys("ABC", Outcome.UNKNOWN)
    assert reasons(told) == {
        "A": InterruptionReason.WORKER_LOST,
        "B": InterruptionReason.EARLIER_CALL_INTERRUPTED,
        "C": InterruptionReason.EARLIER_CALL_INTERRUPTED,
    }
    assert begun_again(told) == {}
    assert told.types[-1] == "MODEL_STARTED"


def test_a_call_behind_an_interrupted_one_that_never_began_is_not_begun() -> None:
    one_by_one = replace(an_agent(), limits=replace(an_agent().limits, parallel_tools=1))
    told = asked_for(a_call("A", MAIL), a_call("B"), agent=one_by_one).lost()

    assert results(told) == {"A": Outcome.UNKNOWN, "B": Outcome.NOT_STARTED}


def test_case_62_a_reading_call_runs_again_and_has_one_result() -> None:
    told = asked_for(a_call("A")).lost()
    assert rules(told) == {"A": "rerun"}

    told.finished("A")

    assert results(told) == {"A": Outcome.COMPLETED}


def test_case_64_what_is_done_is_kept_and_what_stands_behind_the_interrupted_call_is_not() -> None:
    told = asked_for(a_call("a", WRITES), a_call("b", MAIL), a_call("c")).finished("a").lost()

    assert results(told) == {"a": Outcome.COMPLETED, "b": Outcome.UNKNOWN, "c": Outcome.UNKNOWN}


def test_case_65_an_error_that_bars_is_kept_and_the_call_behind_it_never_began() -> None:
    bars = replace(BARRING, on_error=WRITES.on_error)
    told = asked_for(a_call("a", bars), a_call("b"), agent=agent_with(bars, READS))
    told.finished("a", outcome=Outcome.ERROR).lost()

    assert results(told) == {"a": Outcome.ERROR, "b": Outcome.NOT_STARTED}


def test_a_tool_may_have_the_calls_behind_its_interrupted_one_go_on() -> None:
    told = asked_for(a_call("A", COUNT), a_call("B")).lost()

    assert rules(told) == {"A": "interrupt", "B": "rerun"}
    assert begun_again(told) == {"B": 2}


def test_a_reported_call_takes_others_with_it_only_where_its_tool_says_so() -> None:
    takes = replace(WRITES, after_interrupt="cascade")
    told = asked_for(a_call("A", takes), a_call("B"), agent=agent_with(takes, READS)).lost()

    assert rules(told) == {"A": "report", "B": "interrupt"}


def test_case_69_a_call_of_a_tool_that_declares_nothing_is_never_run_again() -> None:
    silent = ToolSpec(name="silent", description="", parameters="{}")
    told = asked_for(a_call("A", silent), agent=agent_with(silent)).lost()

    assert results(told) == {"A": Outcome.UNKNOWN}
    assert begun_again(told) == {}


@pytest.mark.parametrize("tool", [READS, IDEMPOTENT, FLAKY], ids=lambda tool: tool.name)
def test_an_agent_that_replays_nothing_runs_no_begun_call_again(tool: ToolSpec) -> None:
    told = asked_for(a_call("A", tool), agent=replace(an_agent(), never_replay=True)).lost()

    assert rules(told) == {"A": "report"}
    assert results(told) == {"A": Outcome.UNKNOWN}


def test_a_turn_may_be_stricter_than_its_agent() -> None:
    told = Told(never_replay=True).begun().answered(an_answer("", a_call("A"))).lost()

    assert rules(told) == {"A": "report"}


def test_an_agent_that_replays_nothing_still_asks_people_and_interrupts() -> None:
    told = asked_for(
        a_call("A", WIRE), a_call("B", MAIL), agent=replace(an_agent(), never_replay=True)
    ).lost()

    assert rules(told) == {"A": "park", "B": "interrupt"}


def test_case_71_a_recovery_that_is_lost_itself_tells_nothing_twice() -> None:
    told = asked_for(a_call("A", WRITES), a_call("B", IDEMPOTENT), a_call("C", CHARGE))
    told.lost(C=FoundDone(content="paid")).lost().lost()

    assert results(told) == {"A": Outcome.UNKNOWN, "C": Outcome.COMPLETED}
    assert [call.attempt for call in told.turn.open_calls] == [4]
    assert rules(told) == {"B": "rerun_idempotent"}


def test_case_72_an_old_error_stays_as_it_is() -> None:
    told = asked_for(a_call("A"), a_call("B", WRITES)).finished("A", outcome=Outcome.ERROR).lost()

    assert results(told) == {"A": Outcome.ERROR, "B": Outcome.UNKNOWN}
    (error,) = [m for m in told.transcript.values() if getattr(m, "call_id", "") == "A"]
    assert isinstance(error, ToolResult)
    assert error.content == "result A"


def test_a_call_that_waits_for_somebody_is_not_given_up_with_an_interrupted_one() -> None:
    told = together(a_call("A", MAIL), a_call("B", REFUND)).lost()

    assert results(told) == {"A": Outcome.UNKNOWN}
    assert told.turn.status is Status.WAITING_FOR_APPROVAL


def test_without_its_agent_nothing_is_foreseen_to_run_again() -> None:
    told = asked_for(a_call("A"), a_call("B", IDEMPOTENT))

    assert [fate.told.rule for fate in fates(told.turn, None, None)] == ["report", "report"]


def test_a_resume_point_foresees_the_rules_of_the_tools() -> None:
    told = asked_for(a_call("A", WIRE), a_call("B", MAIL), a_call("C"))

    point = of_active(told.turn, told.agent, is_lost=True)

    assert isinstance(point, Resumable)
    assert [call.rule for call in point.unanswered] == ["park", "interrupt", "interrupt"]


# --- Probes --------------------------------------------------------------------------------------


def test_a_probe_that_knows_the_result_gives_it_to_the_call() -> None:
    told = asked_for(a_call("A", CHARGE), a_call("B", MAIL)).lost(A=FoundDone(content="paid 9"))

    (kept,) = [event for event in told.last if isinstance(event, e.ToolCompleted)]
    assert (kept.result.content, kept.known_by) == ("paid 9", "probe")
    assert rules(told) == {"A": "keep", "B": "interrupt"}


@pytest.mark.parametrize("never_replay", [True, False])
def test_a_call_that_a_probe_knows_not_to_be_done_runs_under_every_rule(
    *, never_replay: bool
) -> None:
    agent = replace(an_agent(), never_replay=never_replay)
    told = asked_for(a_call("A", CHARGE), agent=agent).lost(A="not_done")

    assert rules(told) == {"A": "run"}
    assert begun_again(told) == {"A": 2}
    assert told.lost().turn.open_calls == ()
    assert results(told) == {"A": Outcome.UNKNOWN}


def test_a_probe_that_does_not_know_leaves_it_to_the_rule() -> None:
    told = asked_for(a_call("A", CHARGE)).lost(A="unknown")

    assert rules(told) == {"A": "report"}


def test_what_a_probe_knows_counts_also_for_a_call_that_is_given_up_with_another() -> None:
    told = asked_for(a_call("A", MAIL), a_call("B", CHARGE), a_call("C", CHARGE)).lost(
        B=FoundDone(content="paid"), C="not_done"
    )

    assert results(told) == {
        "A": Outcome.UNKNOWN,
        "B": Outcome.COMPLETED,
        "C": Outcome.CANCELLED,
    }


def test_a_call_known_not_to_be_done_is_cancelled_with_its_turn_and_not_unknown() -> None:
    told = asked_for(a_call("A", CHARGE)).cancelled().lost(A="not_done")

    assert results(told) == {"A": Outcome.CANCELLED}
    assert told.turn.status is Status.CANCELLED


# --- Tools that outlast their grace --------------------------------------------------------------


def test_case_70_a_reading_call_that_was_stopped_is_cancelled_and_the_model_is_called() -> None:
    told = asked_for(a_call("A")).paused().finished("A", outcome=Outcome.CANCELLED)

    assert told.turn.status is Status.PAUSED
    assert results(told) == {"A": Outcome.CANCELLED}
    assert reasons(told) == {"A": InterruptionReason.CUT_OFF}
    told.resumed()
    assert isinstance(told.turn.state, ModelDue)


def test_case_70_a_writing_call_that_was_cut_off_is_unknown() -> None:
    told = asked_for(a_call("A", WRITES)).paused().cut_off()

    assert told.turn.status is Status.PAUSED
    assert results(told) == {"A": Outcome.UNKNOWN}
    assert reasons(told) == {"A": InterruptionReason.CUT_OFF}


def test_a_stopped_call_is_not_tried_again_whatever_its_tool_does_with_errors() -> None:
    told = asked_for(a_call("A", FLAKY)).paused().finished("A", outcome=Outcome.CANCELLED)

    assert results(told) == {"A": Outcome.CANCELLED}
