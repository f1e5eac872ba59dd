"""Calls that somebody has to approve: by the agent's policy, or because their tool asks."""

from datetime import timedelta

import pytest

from app.turn import events as e
from app.turn.agent import Limits
from app.turn.decide import decide_request
from app.turn.errors import Rejected
from app.turn.inputs import RejectTool
from app.turn.open_calls import OpenCall
from app.turn.states import Failed, WaitingForCalls
from app.turn.status import Status
from app.turn.transcript import Outcome, ToolResult
from app.turn.waits import Allowed, ApprovalWait, Denied, NotJudged, Unusable
from tests.support.calls_that_wait import asked_for
from tests.support.turns import (
    A_FORM,
    AMY,
    FLAKY,
    REFUND,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
    an_approval,
)

FINANCE = an_approval('{"level":"finance"}', WRITES)
COMPLIANCE = an_approval('{"level":"compliance"}', WRITES)


def results(told: Told) -> list[tuple[str, Outcome]]:
    said = sorted(told.transcript.items())
    return [(m.call_id, m.outcome) for _, m in said if isinstance(m, ToolResult)]


def the_open(told: Told) -> OpenCall:
    assert isinstance(told.turn.state, WaitingForCalls)
    return told.turn.state.first


# --- The policy, before the tool is entered (T39 to T41) -----------------------------------------


def test_the_answer_is_stored_and_no_tool_begins_before_it_is_judged() -> None:
    told = Told().begun().answered(an_answer("", a_call("A", REFUND), a_call("B")))

    assert told.types[-2:] == ["TOOL_REQUESTED", "STEP_COMPLETED"]
    assert told.turn.status is Status.RUNNING
    assert told.begun().types[0] == "STEP_STARTED"


def test_case_140_a_call_that_needs_an_approval_is_put_to_somebody_in_one_commit() -> None:
    told = asked_for(a_call("A", REFUND))

    assert told.types == [
        "STEP_STARTED",
        "TOOL_APPROVAL_REQUESTED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
    ]
    assert told.turn.status is Status.WAITING_FOR_APPROVAL
    assert the_open(told).wait == ApprovalWait(
        stage="policy",
        content="{}",
        fingerprint=an_approval().fingerprint,
        requested_at=told.at,
    )
    assert told.turn.suspension_type == "TOOL_APPROVAL"


def test_an_approved_call_is_entered_and_the_person_is_on_record() -> None:
    told = asked_for(a_call("A", REFUND)).later(minutes=5).approved("A")

    assert told.types == ["TOOL_APPROVAL_DECIDED", "TURN_RESUMED"]
    (call,) = told.turn.open_calls
    assert [(each.actor_id, each.stage, each.at) for each in call.approvals] == [
        (AMY, "policy", told.at)
    ]
    assert told.begun().types == ["STEP_STARTED", "TOOL_STARTED"]
    assert told.finished("A").turn.counters.tool_calls == 1


def test_a_rejected_call_is_never_entered_and_the_model_reads_why() -> None:
    told = asked_for(a_call("A", REFUND), a_call("B")).rejected("A", "too dear")

    assert told.types == ["TOOL_APPROVAL_DECIDED", "TOOL_REJECTED", "TURN_RESUMED"]
    result = told.transcript[2]
    assert isinstance(result, ToolResult)
    assert result.outcome is Outcome.REJECTED
    assert result.content.endswith("The reason given: too dear")
    assert told.begun().types == ["STEP_STARTED", "TOOL_STARTED"]
    assert [call.call_id for call in told.turn.open_calls] == ["B"]


def test_what_the_policy_denies_is_answered_and_the_next_call_moves_in_the_same_commit() -> None:
    told = Told(an_agent(has_policy=True)).begun()
    told.says = {"A": Denied(code="after_hours", message="ask tomorrow")}
    told.answered(an_answer("", a_call("A", WRITES), a_call("B"), a_call("C"))).begun()

    assert told.types == ["STEP_STARTED", "TOOL_REJECTED", "TOOL_STARTED", "TOOL_STARTED"]
    assert results(told) == [("A", Outcome.REJECTED)]
    assert told.finished("B", "C").turn.counters.tool_calls == 2


def test_a_round_that_is_denied_as_a_whole_goes_back_to_the_model() -> None:
    told = Told(an_agent(has_policy=True)).begun()
    told.says = {"A": Denied(code="no", message=""), "B": Unusable(content="amount: a number")}
    told.answered(an_answer("", a_call("A", WRITES), a_call("B"))).begun()

    assert told.types == [
        "STEP_STARTED",
        "TOOL_REJECTED",
        "TOOL_FAILED",
        "STEP_COMPLETED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]
    assert results(told) == [("A", Outcome.REJECTED), ("B", Outcome.ERROR)]


def test_case_99_where_the_policy_does_not_answer_the_turn_fails_and_nothing_is_entered() -> None:
    told = Told(an_agent(has_policy=True)).begun()
    told.says = {"A": NotJudged()}
    told.answered(an_answer("", a_call("A", WRITES), a_call("B"))).begun()

    assert told.types == ["TOOL_INTERRUPTED", "TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_FAILED"]
    assert told.turn.state == Failed(reason="policy_failed")
    assert results(told) == [("A", Outcome.CANCELLED), ("B", Outcome.CANCELLED)]


def test_no_judgement_is_no_permission() -> None:
    told = Told(an_agent(has_policy=True)).begun()
    told.says = {"B": None}
    told.answered(an_answer("", a_call("A"), a_call("B", WRITES))).begun().finished("A")

    assert told.types == ["TOOL_COMPLETED", "STEP_COMPLETED"]
    assert told.begun().last == ()

    told.says = {"B": Allowed()}
    assert told.begun().types == ["STEP_STARTED", "TOOL_STARTED"]


def test_calls_that_all_may_run_still_run_side_by_side() -> None:
    told = asked_for(a_call("A"), a_call("B"), a_call("C"), agent=an_agent(has_policy=True))

    assert told.types == ["STEP_STARTED", "TOOL_STARTED", "TOOL_STARTED", "TOOL_STARTED"]


def test_several_gated_calls_are_put_to_somebody_one_by_one_in_their_order() -> None:
    told = asked_for(a_call("A", REFUND), a_call("B", REFUND), a_call("C"))

    assert [call.call_id for call in told.turn.waiting_calls] == ["A"]
    told.approved("A").begun().finished("A")
    assert [call.call_id for call in told.turn.waiting_calls] == ["B"]
    told.rejected("B").begun().finished("C")

    outcomes = [Outcome.COMPLETED, Outcome.REJECTED, Outcome.COMPLETED]
    assert results(told) == list(zip("ABC", outcomes, strict=True))


@pytest.mark.parametrize(
    ("counts", "status"), [(True, Status.BUDGET_EXCEEDED), (False, Status.RUNNING)]
)
def test_case_117_the_time_an_approval_takes_counts_unless_the_limits_leave_it_out(
    *, counts: bool, status: Status
) -> None:
    limits = Limits(max_duration=timedelta(minutes=10), count_waiting=counts)
    told = asked_for(a_call("A", REFUND), agent=an_agent(limits=limits))

    told.later(minutes=10).approved("A").begun()

    assert told.turn.status is status


# --- Answers that do not fit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call_id", "fingerprint", "code"),
    [
        ("A", "older", "correlation_mismatch"),  # case 100
        ("B", None, "correlation_mismatch"),  # not its turn yet
        ("Z", None, "correlation_mismatch"),
    ],
)
def test_case_100_an_approval_of_something_else_changes_nothing(
    call_id: str, fingerprint: str | None, code: str
) -> None:
    told = asked_for(a_call("A", REFUND), a_call("B", REFUND))
    before = told.turn

    with pytest.raises(Rejected) as refusal:
        told.approved(call_id, fingerprint)

    assert (refusal.value.code, told.turn) == (code, before)
    assert "'A'" in refusal.value.detail


def test_an_approval_may_say_what_it_has_seen() -> None:
    told = asked_for(a_call("A", REFUND)).approved("A", an_approval().fingerprint)

    assert told.types == ["TOOL_APPROVAL_DECIDED", "TURN_RESUMED"]


def test_a_second_approval_of_a_call_finds_nothing_that_waits() -> None:
    told = asked_for(a_call("A", REFUND)).approved("A")

    with pytest.raises(Rejected) as refusal:
        told.approved("A")

    assert refusal.value.code == "turn_not_blocked"


def test_a_call_is_rejected_without_its_agent() -> None:
    told = asked_for(a_call("A", REFUND))
    request = RejectTool(call_id=the_open(told).call_id, actor_id=AMY, reason="")

    events = decide_request(told.turn, request, at=told.at)

    assert [event.type for event in events] == [
        "TOOL_APPROVAL_DECIDED",
        "TOOL_REJECTED",
        "TURN_RESUMED",
    ]


def test_case_82_a_message_gives_up_what_is_open_and_a_late_approval_is_refused() -> None:
    told = asked_for(a_call("A"), a_call("B", REFUND), a_call("C"))
    told.finished("A").posted("how much is it?")

    assert told.types == ["TOOL_INTERRUPTED", "TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_RESUMED"]
    assert results(told) == [
        ("A", Outcome.COMPLETED),
        ("B", Outcome.SUPERSEDED),
        ("C", Outcome.SUPERSEDED),
    ]
    with pytest.raises(Rejected):
        told.approved("B")


# --- Approvals that a tool asks for itself (T42) -------------------------------------------------


def test_case_103_a_tool_that_asks_has_done_nothing_and_its_entry_is_given_back() -> None:
    told = asked_for(a_call("A", WRITES), agent=an_agent(limits=Limits(max_tool_calls=1)))
    told.finished("A", needs=FINANCE)

    assert told.types == ["TOOL_APPROVAL_REQUESTED", "STEP_COMPLETED", "TURN_SUSPENDED"]
    assert told.turn.counters.tool_calls == 0
    told.approved("A").begun()
    assert (told.turn.open_calls[0].attempt, told.turn.counters.tool_calls) == (2, 1)
    assert told.finished("A").types[0] == "TOOL_COMPLETED"


def test_case_94_the_policys_approval_is_not_the_tools() -> None:
    told = asked_for(a_call("A", REFUND)).approved("A").begun().finished("A", needs=an_approval())

    assert told.turn.status is Status.WAITING_FOR_APPROVAL
    told.approved("A").begun()
    assert [each.stage for each in told.turn.open_calls[0].approvals] == ["policy", "tool"]


def test_case_95_a_no_to_the_second_level_keeps_the_yes_to_the_first_on_record() -> None:
    told = asked_for(a_call("A", WRITES)).finished("A", needs=FINANCE).approved("A").begun()
    told.finished("A", needs=COMPLIANCE).rejected("A")

    decided = [event for event in told.events if isinstance(event, e.ToolApprovalDecided)]
    assert [(x.fingerprint, x.is_approved) for x in decided] == [
        (FINANCE.fingerprint, True),
        (COMPLIANCE.fingerprint, False),
    ]
    assert results(told) == [("A", Outcome.REJECTED)]


def test_case_96_an_approval_counts_for_what_was_shown_only() -> None:
    told = asked_for(a_call("A", WRITES))
    told.finished("A", needs=an_approval('{"amount":20000}', WRITES)).approved("A").begun()
    told.finished("A", needs=an_approval('{"amount":30000}', WRITES))

    assert told.turn.status is Status.WAITING_FOR_APPROVAL


def test_case_97_a_tool_that_asks_for_what_it_has_fails_the_turn() -> None:
    told = asked_for(a_call("A", WRITES)).finished("A", needs=FINANCE).approved("A").begun()
    told.finished("A", needs=FINANCE)

    assert told.turn.state == Failed(reason="approval_loop")
    assert results(told) == [("A", Outcome.ERROR)]


def test_case_102_an_approval_outlasts_a_form_of_the_same_call() -> None:
    told = asked_for(a_call("A", WRITES)).finished("A", needs=FINANCE).approved("A").begun()
    told.finished("A", needs=A_FORM).filled_in("A", '{"city":"Tokyo"}').begun()

    (call,) = told.turn.open_calls
    assert [each.fingerprint for each in call.approvals] == [FINANCE.fingerprint]
    assert (call.attempt, call.resumes) == (3, 2)


def test_case_106_the_others_of_a_round_end_and_only_the_call_that_asked_is_entered_again() -> None:
    told = asked_for(a_call("A"), a_call("B", WRITES), a_call("C"))
    told.finished("B", needs=FINANCE)
    assert told.types == ["TOOL_PUT_ASIDE"]
    assert told.turn.waiting_calls == ()

    told.finished("C").finished("A")

    assert told.turn.status is Status.WAITING_FOR_APPROVAL
    assert results(told) == [("A", Outcome.COMPLETED), ("C", Outcome.COMPLETED)]
    assert told.approved("B").begun().types == ["STEP_STARTED", "TOOL_STARTED"]


def test_case_106_of_two_that_ask_the_first_is_put_to_somebody_and_the_second_not_entered() -> None:
    told = asked_for(a_call("A", WRITES), a_call("B", WRITES))
    told.finished("B", needs=COMPLIANCE).finished("A", needs=FINANCE)
    assert [call.call_id for call in told.turn.waiting_calls] == ["A"]

    told.approved("A").begun().finished("A")

    assert told.types[-3:] == ["TOOL_APPROVAL_REQUESTED", "STEP_COMPLETED", "TURN_SUSPENDED"]
    assert [call.call_id for call in told.turn.waiting_calls] == ["B"]
    assert told.turn.open_calls[0].attempt == 1


def test_a_call_that_waits_for_its_retry_comes_before_one_that_asks_behind_it() -> None:
    told = asked_for(a_call("A", FLAKY), a_call("B", WRITES))
    told.finished("A", outcome=Outcome.ERROR).finished("B", needs=FINANCE)

    assert told.turn.waiting_calls == ()
    told.later(minutes=2).begun().finished("A")
    assert told.turn.status is Status.WAITING_FOR_APPROVAL


def test_a_turn_rests_for_the_retry_that_comes_next_in_order_not_for_an_earlier_one() -> None:
    told = asked_for(a_call("A", FLAKY), a_call("B", FLAKY), a_call("C", WRITES))
    told.finished("B", outcome=Outcome.ERROR).later(seconds=0.5)
    told.finished("A", outcome=Outcome.ERROR).finished("C", needs=FINANCE)

    first, second, _ = told.turn.open_calls
    assert first.retry_at is not None
    assert second.retry_at is not None
    assert told.turn.due_at == first.retry_at > second.retry_at


def test_a_call_that_was_entered_was_allowed_and_is_not_judged_again() -> None:
    told = asked_for(a_call("A", WRITES), agent=an_agent(has_policy=True))
    told.finished("A", needs=FINANCE).approved("A")
    told.says = {"A": Denied(code="no", message="changed its mind")}

    assert told.begun().types == ["STEP_STARTED", "TOOL_STARTED"]


def test_stopping_a_turn_comes_before_what_its_tool_asks() -> None:
    cancelled = asked_for(a_call("A", WRITES)).cancelled().finished("A", needs=FINANCE)
    paused = asked_for(a_call("A", WRITES)).paused().finished("A", needs=FINANCE)

    assert cancelled.turn.status is Status.CANCELLED
    assert results(cancelled) == [("A", Outcome.CANCELLED)]
    assert paused.turn.status is Status.PAUSED
    assert paused.resumed().begun().turn.status is Status.WAITING_FOR_APPROVAL


def test_a_message_that_steers_comes_before_what_a_tool_asks() -> None:
    told = asked_for(a_call("A", WRITES)).steered().finished("A", needs=FINANCE)

    assert told.types == [
        "TOOL_PUT_ASIDE",
        "STEP_COMPLETED",
        "TOOL_SKIPPED",
        "INPUT_PROMOTED",
        "MESSAGE_ADDED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]


def test_a_worker_that_dies_while_a_tool_is_put_aside_loses_no_question() -> None:
    told = asked_for(a_call("A"), a_call("B", WRITES)).finished("B", needs=FINANCE).lost()

    assert told.types == ["STEP_RECOVERED", "STEP_STARTED", "TOOL_STARTED"]
    recovered = told.last[0]
    assert isinstance(recovered, e.StepRecovered)
    assert [call.call_id for call in recovered.calls] == ["A"]
    assert told.finished("A").turn.status is Status.WAITING_FOR_APPROVAL


def test_whoever_began_the_turn_is_kept_from_approving_where_the_agent_says_so() -> None:
    told = asked_for(a_call("A", REFUND), agent=an_agent(requester_may_approve=False))

    wait = the_open(told).wait
    assert isinstance(wait, ApprovalWait)
    assert wait.excludes_requester


def test_a_pause_is_no_command_for_a_turn_that_waits_for_an_approval() -> None:
    told = asked_for(a_call("A", REFUND))

    with pytest.raises(Rejected) as refusal:
        told.paused()

    assert refusal.value.code == "wrong_command"


def test_replanning_gives_up_an_approval_like_a_message() -> None:
    told = asked_for(a_call("A", REFUND))

    assert told.posted("no").types == ["TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_RESUMED"]
    assert told.transcript[3] == a_message("no", "m2")
