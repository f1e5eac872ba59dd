"""Calls of one answer that wait for somebody at the same time (C28)."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Effect, Limits
from app.turn.errors import Rejected
from app.turn.ids import CallId
from app.turn.status import Status
from app.turn.transcript import Outcome, ToolCall, ToolResult
from app.turn.waits import Denied, NotJudged
from tests.support.calls_that_wait import together
from tests.support.turns import (
    A_FORM,
    AMY,
    FLAKY,
    QUESTION,
    REFUND,
    SHIP,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
    an_approval,
)

ALL_KINDS = (a_call("A", REFUND), a_call("B", SHIP), a_call("C", QUESTION))

ANSWERS: Mapping[str, i.Request] = {
    "A": i.RejectTool(call_id=CallId("A"), actor_id=AMY, reason=""),
    "B": i.GiveToolResult(call_id=CallId("B"), output="{}"),
    "C": i.UserInput(message=a_message("Tokyo"), call_id=CallId("C")),
}


def results(told: Told) -> list[tuple[str, Outcome]]:
    said = sorted(told.transcript.items())
    return [(m.call_id, m.outcome) for _, m in said if isinstance(m, ToolResult)]


def waiting(told: Told) -> list[str]:
    return [call.call_id for call in told.turn.waiting_calls]


def cancel_requests(told: Told) -> list[str]:
    return [x.call_id for x in told.events if isinstance(x, e.ExternalToolCancelRequested)]


def test_every_call_that_needs_somebody_opens_at_once() -> None:
    told = together(*ALL_KINDS)

    assert told.types == [
        "STEP_STARTED",
        "TOOL_APPROVAL_REQUESTED",
        "EXTERNAL_TOOL_REQUESTED",
        "TOOL_INPUT_REQUESTED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
    ]
    assert waiting(told) == ["A", "B", "C"]
    assert told.turn.status is Status.WAITING_FOR_APPROVAL


def test_what_the_turn_waits_for_is_the_first_that_is_still_open() -> None:
    told = together(*ALL_KINDS)

    assert told.rejected("A").turn.status is Status.WAITING_FOR_TOOL
    assert told.gave("B").turn.status is Status.WAITING_FOR_USER


@pytest.mark.parametrize("order", [*permutations("ABC")], ids="".join)
def test_answers_are_taken_in_any_order_and_results_stand_in_declared_order(
    order: tuple[str, ...],
) -> None:
    told = together(*ALL_KINDS)
    for call_id in order:
        assert told.turn.status is not Status.RUNNING
        told.tell(ANSWERS[call_id])

    assert told.types[-1] == "TURN_RESUMED"
    assert results(told) == [
        ("A", Outcome.REJECTED),
        ("B", Outcome.COMPLETED),
        ("C", Outcome.COMPLETED),
    ]
    assert told.begun().types == ["STEP_STARTED", "MODEL_STARTED"]


def test_local_calls_that_need_nobody_run_meanwhile() -> None:
    told = together(a_call("A", SHIP), a_call("B"), a_call("C", WRITES))
    assert told.types == ["STEP_STARTED", "EXTERNAL_TOOL_REQUESTED", "TOOL_STARTED", "TOOL_STARTED"]

    told.finished("B", "C")

    assert told.types[-2:] == ["STEP_COMPLETED", "TURN_SUSPENDED"]
    assert told.turn.status is Status.WAITING_FOR_TOOL


def test_an_answer_is_taken_while_others_run_and_the_turn_is_not_resumed_by_it() -> None:
    told = together(a_call("A", SHIP), a_call("B", WRITES)).gave("A")

    assert told.types == ["EXTERNAL_TOOL_COMPLETED"]
    assert told.finished("B").types == [
        "TOOL_COMPLETED",
        "STEP_COMPLETED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]


def test_what_is_approved_while_others_run_begins_with_the_next_that_ends() -> None:
    told = together(a_call("A", REFUND), a_call("B", WRITES), a_call("C"))
    told.approved("A").finished("B")

    assert told.types == ["TOOL_COMPLETED", "TOOL_STARTED"]
    assert [call.in_flight for call in told.turn.open_calls] == [True, True]


def test_an_approved_call_runs_while_the_others_still_wait() -> None:
    told = together(a_call("A", REFUND), a_call("B", SHIP)).approved("A")
    assert told.types == ["TOOL_APPROVAL_DECIDED", "TURN_RESUMED"]

    told.begun().finished("A")

    assert told.turn.status is Status.WAITING_FOR_TOOL
    assert results(told) == [("A", Outcome.COMPLETED)]


def test_a_tool_that_asks_is_opened_at_once_though_others_run() -> None:
    told = together(a_call("A", WRITES), a_call("B")).finished("A", needs=an_approval())

    assert told.types == ["TOOL_APPROVAL_REQUESTED"]
    assert (waiting(told), told.turn.status) == (["A"], Status.RUNNING)


def test_two_forms_are_told_apart_by_their_calls() -> None:
    told = together(a_call("A", QUESTION), a_call("B", QUESTION), a_call("C", REFUND))
    with pytest.raises(Rejected) as refusal:
        told.said("41")
    assert refusal.value.code == "payload_invalid"

    told.said("41", "B").said("Kim", "A")

    texts = [m.content for _, m in sorted(told.transcript.items()) if isinstance(m, ToolResult)]
    assert texts == ["Kim", "41"]


@pytest.mark.parametrize("call_id", ["A", "C"])
def test_an_answer_of_another_kind_is_refused(call_id: str) -> None:
    told = together(*ALL_KINDS)

    with pytest.raises(Rejected) as refusal:
        told.gave(call_id)

    assert refusal.value.code == "wrong_command"


def test_a_message_closes_all_of_them_even_where_one_asks_in_words() -> None:
    told = together(*ALL_KINDS).posted("stop, something else")

    assert told.types == [
        "TOOL_INTERRUPTED",
        "TOOL_INTERRUPTED",
        "TOOL_INTERRUPTED",
        "EXTERNAL_TOOL_CANCEL_REQUESTED",
        "MESSAGE_ADDED",
        "TURN_RESUMED",
    ]
    assert cancel_requests(told) == ["B"]


def test_a_message_answers_the_question_that_is_the_only_thing_still_open() -> None:
    told = together(*ALL_KINDS).rejected("A").gave("B").posted("Tokyo")

    assert told.types == ["TOOL_INPUT_RECEIVED", "TOOL_COMPLETED", "TURN_RESUMED"]


# --- Retries, pauses, recovery, limits -----------------------------------------------------------


def test_a_retry_that_is_due_later_lets_the_turn_rest_until_then_with_its_waits_open() -> None:
    told = together(a_call("A", SHIP), a_call("B", FLAKY)).finished("B", outcome=Outcome.ERROR)
    assert (told.turn.status, waiting(told)) == (Status.RETRY_SCHEDULED, ["A"])

    assert told.gave("A").turn.status is Status.RETRY_SCHEDULED
    assert told.later(minutes=2).begun().types[0] == "TURN_RESUMED"


def test_an_approved_call_need_not_wait_for_the_retry_of_another() -> None:
    told = together(a_call("A", REFUND), a_call("B", FLAKY)).finished("B", outcome=Outcome.ERROR)
    due_at = told.turn.due_at

    told.approved("A").begun()

    assert [call.in_flight for call in told.turn.open_calls] == [True, False]
    assert told.finished("A").turn.due_at == due_at


def test_a_pause_keeps_what_is_open_and_takes_its_answers() -> None:
    told = together(a_call("A", SHIP), a_call("B", REFUND), a_call("C")).paused().finished("C")
    assert (told.turn.status, waiting(told)) == (Status.PAUSED, ["A", "B"])

    assert told.gave("A").types == ["EXTERNAL_TOOL_COMPLETED"]
    assert told.resumed().types == ["TURN_RESUMED", "TURN_SUSPENDED"]
    assert told.turn.status is Status.WAITING_FOR_APPROVAL


def test_a_pause_that_leaves_something_due_goes_on_with_that() -> None:
    told = together(a_call("A", SHIP), a_call("B", REFUND), a_call("C")).paused().finished("C")

    assert told.approved("B").resumed().types == ["TURN_RESUMED"]
    assert told.begun().types == ["STEP_STARTED", "TOOL_STARTED"]


def test_case_112_after_a_crash_nothing_is_asked_for_again() -> None:
    told = together(*ALL_KINDS, a_call("D", replace(WRITES, effect=Effect.WRITES))).lost()

    assert told.types == ["STEP_RECOVERED", "TOOL_INTERRUPTED", "TURN_SUSPENDED"]
    assert waiting(told) == ["A", "B", "C"]
    requested = [x for x in told.events if isinstance(x, e.ExternalToolRequested)]
    assert len(requested) == 1


def test_a_message_that_steers_gives_up_what_is_open_at_the_boundary() -> None:
    told = together(a_call("A", SHIP), a_call("B", WRITES)).steered().finished("B")

    assert told.types == [
        "TOOL_COMPLETED",
        "STEP_COMPLETED",
        "TOOL_INTERRUPTED",
        "EXTERNAL_TOOL_CANCEL_REQUESTED",
        "INPUT_PROMOTED",
        "MESSAGE_ADDED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]


def test_a_call_behind_a_bar_is_not_opened_before_the_bar_has_ended_well() -> None:
    bar = replace(SHIP, block_following=True)
    agent = replace(an_agent(open_waits="together"), tools=(bar, REFUND))
    told = Told(agent).begun().answered(an_answer("", a_call("A", SHIP), a_call("B", REFUND)))
    told.begun()
    assert waiting(told) == ["A"]

    failed = told.copy().gave_error("A")
    assert results(failed) == [("A", Outcome.ERROR), ("B", Outcome.NOT_STARTED)]
    assert waiting(told.gave("A").begun()) == ["B"]


def test_a_budget_that_is_used_up_lets_what_is_outside_come_back_first() -> None:
    calls = (a_call("A", SHIP), a_call("B", SHIP), a_call("C"))
    agent = an_agent(open_waits="together", limits=Limits(max_tool_calls=2))
    told = Told(agent).begun().answered(an_answer("", *calls)).begun()
    assert waiting(told) == ["A", "B"]

    told.gave("A").begun()
    assert (told.turn.status, waiting(told)) == (Status.WAITING_FOR_TOOL, ["B"])
    told.gave("B").begun()

    assert told.turn.status is Status.BUDGET_EXCEEDED
    assert [outcome for _, outcome in results(told)] == [
        Outcome.COMPLETED,
        Outcome.COMPLETED,
        Outcome.CANCELLED,
    ]


def opened(*calls: ToolCall, **says: Denied | NotJudged) -> Told:
    told = Told(an_agent(has_policy=True, open_waits="together")).begun()
    told.says = dict(says)
    return told.answered(an_answer("", *calls)).begun()


def test_what_the_policy_denies_is_answered_and_holds_up_nothing() -> None:
    told = opened(a_call("A", SHIP), a_call("B"), a_call("C"), B=Denied(code="no", message=""))

    assert told.types == [
        "STEP_STARTED",
        "EXTERNAL_TOOL_REQUESTED",
        "TOOL_REJECTED",
        "TOOL_STARTED",
    ]


def test_where_the_policy_does_not_answer_for_one_nothing_goes_outside() -> None:
    told = opened(a_call("A", SHIP), a_call("B"), B=NotJudged())

    assert told.turn.status is Status.FAILED
    assert "EXTERNAL_TOOL_REQUESTED" not in told.types


def test_a_tools_form_waits_beside_the_others() -> None:
    told = together(a_call("A", WRITES), a_call("B", SHIP)).finished("A", needs=A_FORM)

    assert (waiting(told), told.turn.status) == (["A", "B"], Status.WAITING_FOR_USER)
    told.filled_in("A", "{}").begun()
    assert [call.in_flight for call in told.turn.open_calls] == [True, False]
