"""Calls that somebody outside carries out."""

from dataclasses import replace

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from app.turn import events as e
from app.turn.agent import Agent, Limits
from app.turn.errors import Rejected
from app.turn.status import Status
from app.turn.transcript import Outcome, ToolResult
from app.turn.waits import Allowed, ExternalWait, OnOversize
from tests.support.calls_that_wait import asked_for
from tests.support.turns import READS, SHIP, WRITES, Told, a_call, an_agent, an_answer, an_approval


def an_agent_that(on_oversize: OnOversize, *, bars: bool = False) -> Agent:
    ship = replace(SHIP, on_oversize=on_oversize, block_following=bars)
    return replace(an_agent(), tools=(READS, ship))


def results(told: Told) -> list[tuple[str, Outcome]]:
    said = sorted(told.transcript.items())
    return [(m.call_id, m.outcome) for _, m in said if isinstance(m, ToolResult)]


def cancel_requests(told: Told) -> list[str]:
    return [x.call_id for x in told.events if isinstance(x, e.ExternalToolCancelRequested)]


def content_of(told: Told, position: int = 2) -> str:
    result = told.transcript[position]
    assert isinstance(result, ToolResult)
    return result.content


def test_a_call_for_outside_is_asked_for_with_its_arguments_and_counts_as_a_call() -> None:
    told = Told().begun()
    told.says = {"A": Allowed(arguments='{"to": "Tokyo"}')}
    told.answered(an_answer("", a_call("A", SHIP))).begun()

    assert told.types == [
        "STEP_STARTED",
        "EXTERNAL_TOOL_REQUESTED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
    ]
    assert told.turn.status is Status.WAITING_FOR_TOOL
    assert told.turn.waiting_calls[0].wait == ExternalWait(
        arguments='{"to": "Tokyo"}', max_result_bytes=SHIP.max_result_bytes, requested_at=told.at
    )
    assert told.turn.counters.tool_calls == 1


def test_case_107_what_follows_waits_for_the_result_and_results_stand_in_declared_order() -> None:
    told = asked_for(a_call("A", WRITES), a_call("B", SHIP), a_call("C"))
    assert [call.in_flight for call in told.turn.open_calls] == [True, False, False]

    told.finished("A")
    assert told.turn.status is Status.WAITING_FOR_TOOL
    assert [call.in_flight for call in told.turn.open_calls] == [False, False]
    told.gave("B").begun().finished("C")

    assert results(told) == [(call_id, Outcome.COMPLETED) for call_id in "ABC"]


def test_case_108_a_call_that_was_rejected_is_never_asked_for_outside() -> None:
    told = Told().begun()
    told.says = {"A": an_approval(tool=SHIP)}
    told.answered(an_answer("", a_call("A", SHIP))).begun().rejected("A").begun()

    assert "EXTERNAL_TOOL_REQUESTED" not in [event.type for event in told.events]
    assert cancel_requests(told) == []
    assert results(told) == [("A", Outcome.REJECTED)]


def test_an_approved_call_goes_outside_as_it_was_shown_though_the_judgement_is_old() -> None:
    told = Told().begun()
    told.says = {"A": an_approval('{"to": 1}', SHIP)}
    told.answered(an_answer("", a_call("A", SHIP))).begun().approved("A").begun()

    wait = told.turn.waiting_calls[0].wait
    assert isinstance(wait, ExternalWait)
    assert wait.arguments == '{"to": 1}'


def test_a_judgement_without_arguments_lets_nothing_out() -> None:
    told = Told().begun()
    told.says = {"A": Allowed()}
    told.answered(an_answer("", a_call("A", SHIP))).begun()

    assert told.turn.status is Status.FAILED


# --- Results (T81 to T83) ------------------------------------------------------------------------


def test_the_first_result_stands() -> None:
    told = asked_for(a_call("A", SHIP)).gave("A", '{"v":1}')
    assert told.types == ["EXTERNAL_TOOL_COMPLETED", "TURN_RESUMED"]

    with pytest.raises(Rejected) as refusal:
        told.gave("A", '{"v":2}')

    assert refusal.value.code == "turn_not_blocked"
    assert content_of(told) == '{"v":1}'


def test_case_110_an_error_from_outside_is_for_the_model_and_fails_no_turn() -> None:
    told = asked_for(a_call("A", SHIP)).gave_error("A", "the lorry is broken")

    assert told.types == ["EXTERNAL_TOOL_FAILED", "TURN_RESUMED"]
    assert results(told) == [("A", Outcome.ERROR)]
    assert "the lorry is broken" in content_of(told)
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


def test_case_109_a_result_that_is_too_long_is_refused_and_a_shorter_one_taken() -> None:
    told = asked_for(a_call("A", SHIP))

    with pytest.raises(Rejected) as refusal:
        told.gave("A", "x" * 100)

    assert refusal.value.code == "result_too_large"
    assert told.gave("A", "x" * 99).turn.open_calls == ()


def test_case_109_bytes_are_counted_not_characters() -> None:
    with pytest.raises(Rejected):
        asked_for(a_call("A", SHIP)).gave("A", "漢" * 34)


@drawn(text=st.text(min_size=1, max_size=60), most=st.integers(1, 60))
def test_what_is_kept_of_a_cut_result_is_never_longer_than_allowed(text: str, most: int) -> None:
    agent = replace(
        an_agent(), tools=(replace(SHIP, on_oversize="truncate", max_result_bytes=most),)
    )
    told = asked_for(a_call("A", SHIP), agent=agent).gave("A", text)

    assert len(content_of(told).encode(errors="replace")) <= most


@drawn(text=st.text(max_size=60).map(lambda text: text * 3))
def test_a_result_may_be_cut_between_two_characters_instead(text: str) -> None:
    told = asked_for(a_call("A", SHIP), agent=an_agent_that("truncate")).gave("A", text)

    kept, is_cut, _ = content_of(told).partition("\n[cut: the result had ")
    assert len(content_of(told).encode(errors="replace")) <= max(SHIP.max_result_bytes, 1)
    assert text.startswith(kept)
    assert bool(is_cut) == (len(text.encode(errors="replace")) > SHIP.max_result_bytes)


@pytest.mark.parametrize("call_id", ["B", "Z"])
def test_case_88_a_result_of_another_call_is_refused(call_id: str) -> None:
    told = asked_for(a_call("A", SHIP), a_call("B", SHIP))
    before = told.turn

    with pytest.raises(Rejected) as refusal:
        told.gave(call_id)

    assert (refusal.value.code, told.turn) == ("correlation_mismatch", before)


# --- Calls that get their result from somebody else ----------------------------------------------


def test_case_87_a_message_gives_both_up_and_stops_only_what_is_outside() -> None:
    told = asked_for(a_call("A"), a_call("B", SHIP), a_call("C", SHIP)).finished("A")
    told.posted("forget it")

    assert told.types == [
        "TOOL_INTERRUPTED",
        "TOOL_INTERRUPTED",
        "EXTERNAL_TOOL_CANCEL_REQUESTED",
        "MESSAGE_ADDED",
        "TURN_RESUMED",
    ]
    assert cancel_requests(told) == ["B"]
    assert results(told)[1:] == [("B", Outcome.UNKNOWN), ("C", Outcome.SUPERSEDED)]


def test_case_88_its_late_result_is_refused_and_changes_nothing() -> None:
    told = asked_for(a_call("A", SHIP)).posted("forget it")
    before = told.turn

    with pytest.raises(Rejected):
        told.gave("A")

    assert told.turn == before


def test_case_111_cancelling_stops_what_is_outside() -> None:
    told = asked_for(a_call("A", SHIP), a_call("B")).cancelled()

    assert told.types == [
        "TOOL_INTERRUPTED",
        "TOOL_INTERRUPTED",
        "EXTERNAL_TOOL_CANCEL_REQUESTED",
        "MESSAGE_ADDED",
        "TURN_CANCELLED",
    ]
    assert results(told) == [("A", Outcome.UNKNOWN), ("B", Outcome.CANCELLED)]


def test_what_was_asked_for_outside_uses_up_the_budget_like_any_call() -> None:
    told = asked_for(
        a_call("A", SHIP), a_call("B"), agent=an_agent(limits=Limits(max_tool_calls=1))
    )

    told.gave("A").begun()

    assert told.turn.status is Status.BUDGET_EXCEEDED
    assert results(told) == [("A", Outcome.COMPLETED), ("B", Outcome.CANCELLED)]


def test_an_error_from_outside_bars_what_stands_behind_it() -> None:
    told = asked_for(a_call("A", SHIP), a_call("B"), agent=an_agent_that("refuse", bars=True))
    told.gave_error("A")

    assert told.types == ["EXTERNAL_TOOL_FAILED", "TOOL_INTERRUPTED", "TURN_RESUMED"]
    assert results(told) == [("A", Outcome.ERROR), ("B", Outcome.NOT_STARTED)]


def test_a_turn_that_waits_for_its_call_is_not_asked_what_is_next() -> None:
    told = asked_for(a_call("A", SHIP)).begun()

    assert told.last == ()
