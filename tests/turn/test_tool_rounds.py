"""Tools that end, and rounds that are lost."""

from app.turn import events as e
from app.turn.agent import Limits
from app.turn.states import CallingModel, RunningTools
from app.turn.status import Status
from app.turn.transcript import Outcome, ToolResult
from tests.support.turns import (
    IDEMPOTENT,
    READS,
    WRITES,
    Told,
    a_call,
    an_agent,
    an_answer,
)


def three_calls(limits: Limits | None = None) -> Told:
    answer = an_answer("", a_call("A", READS), a_call("B", IDEMPOTENT), a_call("C", WRITES))
    return Told(an_agent(limits=limits)).begun().answered(answer)


def outcomes(told: Told) -> dict[str, str]:
    results = [message for message in told.transcript.values() if isinstance(message, ToolResult)]
    return {result.call_id: result.outcome.value for result in results}


def test_tools_that_end_together_cost_one_commit_that_also_begins_the_next_call() -> None:
    told = three_calls().finished("C", "A", "B")

    assert told.types == [
        "TOOL_COMPLETED",
        "TOOL_COMPLETED",
        "TOOL_COMPLETED",
        "STEP_COMPLETED",
        "STEP_STARTED",
        "MODEL_STARTED",
    ]


def test_case_142_results_stand_in_declared_order_whatever_order_they_came_in() -> None:
    told = three_calls().finished("C").finished("A").finished("B")

    roles = [told.transcript[position] for position in (2, 3, 4)]
    assert [message.call_id for message in roles if isinstance(message, ToolResult)] == [
        "A",
        "B",
        "C",
    ]


def test_a_result_is_stored_while_others_still_run() -> None:
    told = three_calls().finished("C")

    assert told.types == ["TOOL_COMPLETED"]
    assert isinstance(told.turn.state, RunningTools)
    assert [call.call_id for call in told.turn.open_calls] == ["A", "B"]


def test_no_more_calls_are_in_flight_than_the_agent_allows() -> None:
    told = three_calls(Limits(parallel_tools=1))

    assert [call.in_flight for call in told.turn.open_calls] == [True, False, False]
    told.finished("A")
    assert [(c.call_id, c.in_flight) for c in told.turn.open_calls] == [("B", True), ("C", False)]


def test_a_second_result_of_a_call_is_nothing_new() -> None:
    told = three_calls().finished("A").finished("A")

    assert told.last == ()


def test_a_tools_error_is_told_to_the_model() -> None:
    told = three_calls().finished("A", "B", "C", outcome=Outcome.ERROR)

    assert told.types[:3] == ["TOOL_FAILED", "TOOL_FAILED", "TOOL_FAILED"]
    assert isinstance(told.turn.state, CallingModel)


def test_case_59_a_writing_call_that_was_lost_is_reported_and_not_run_again() -> None:
    told = three_calls().finished("A", "B").lost()

    assert outcomes(told)["C"] == "unknown"
    assert isinstance(told.turn.state, CallingModel)
    assert told.turn.counters.tool_calls == 3


def test_case_60_an_idempotent_call_that_was_lost_runs_again_as_its_second_attempt() -> None:
    told = three_calls().finished("A", "C").lost()

    (call,) = told.turn.open_calls
    assert (call.call_id, call.attempt, call.in_flight) == ("B", 2, True)


def test_case_62_a_reading_call_that_was_lost_runs_again() -> None:
    told = three_calls().finished("B", "C").lost()

    (call,) = told.turn.open_calls
    assert (call.call_id, call.attempt) == ("A", 2)


def test_case_58_a_call_that_never_began_runs_under_every_rule() -> None:
    told = three_calls(Limits(parallel_tools=2)).finished("A", "B")
    assert told.turn.open_calls[0].attempt == 1
    told = three_calls(Limits(parallel_tools=2)).lost()

    assert outcomes(told) == {}
    told.finished("A").finished("B")
    assert told.turn.open_calls[0].call_id == "C"
    assert told.turn.open_calls[0].attempt == 1


def test_a_lost_round_says_what_becomes_of_each_call() -> None:
    told = three_calls().lost()

    recovered = [event for event in told.events if isinstance(event, e.StepRecovered)]
    rules = [(call.call_id, call.rule) for call in recovered[0].calls]
    assert rules == [("A", "rerun"), ("B", "rerun_idempotent"), ("C", "report")]


def test_case_71_a_recovery_that_is_lost_itself_repeats_no_result() -> None:
    told = three_calls().lost().lost()

    assert outcomes(told) == {"C": "unknown"}
    assert [call.attempt for call in told.turn.open_calls] == [3, 3]


def test_a_lost_model_call_is_made_again_and_what_is_not_stored_of_it_withdrawn() -> None:
    told = Told().begun().wrote("Once upon").lost()

    recovered = [event for event in told.events if isinstance(event, e.StepRecovered)]
    assert recovered[0].discard_from == len("Once upon")
    assert recovered[0].recovery == "RETRY_RESPONSE"
    assert told.turn.counters.model_attempts == 2


def test_a_lost_model_call_without_text_withdraws_nothing() -> None:
    told = Told().begun().lost()

    recovered = [event for event in told.events if isinstance(event, e.StepRecovered)]
    assert recovered[0].discard_from is None


def test_case_124_cancelling_during_a_tool_keeps_its_result_and_calls_no_model() -> None:
    told = three_calls().cancelled()
    assert told.types == ["CANCELLATION_REQUESTED"]

    told.finished("A", "B", "C")

    assert told.turn.status == Status.CANCELLED
    assert set(outcomes(told).values()) == {"completed"}
    assert "MODEL_STARTED" not in told.types


def test_cancelling_starts_no_more_calls_and_closes_those_that_never_began() -> None:
    told = three_calls(Limits(parallel_tools=1)).cancelled().finished("A")

    assert told.turn.status == Status.CANCELLED
    assert outcomes(told) == {"A": "completed", "B": "cancelled", "C": "cancelled"}


def test_a_cancelled_round_that_is_lost_ends_with_what_is_not_known_said() -> None:
    told = three_calls().cancelled().lost()

    assert told.turn.status == Status.CANCELLED
    assert outcomes(told)["C"] == "unknown"
