"""Calls that get no result of their tool: what is said of them, why, and in whose words."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Effect, Limits
from app.turn.decide import decide_request
from app.turn.interruption import WORDS, in_words_of, interrupted, unknown_placeholders
from app.turn.status import Status
from app.turn.transcript import InterruptionReason, Outcome, StopReason, Usage
from tests.support.turns import (
    FLAKY,
    IDEMPOTENT,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
)

TEMPLATE = "{toolName} ({callId}) of {turnId}: {reason}."


def one_at_a_time(texts: Mapping[Outcome, str] | None = None) -> Told:
    """Three calls of which the first is in flight."""
    agent = replace(an_agent(limits=Limits(parallel_tools=1)), interruption_text=texts or {})
    answer = an_answer("", a_call("A", WRITES), a_call("B"), a_call("C", WRITES))
    return Told(agent).begun().answered(answer)


def interruptions(told: Told) -> list[e.ToolInterrupted]:
    return [event for event in told.events if isinstance(event, e.ToolInterrupted)]


def said(told: Told) -> list[tuple[str, str]]:
    return [(event.result.call_id, event.result.content) for event in interruptions(told)]


def paused(told: Told) -> Told:
    return told.paused().finished("A")


def test_a_call_is_told_of_in_the_words_of_its_agent() -> None:
    told = paused(one_at_a_time({Outcome.SUPERSEDED: TEMPLATE})).posted("no, this", "m2")

    assert said(told) == [
        ("B", "look_up (B) of t1: a new message of the user came first."),
        ("C", "pay (C) of t1: a new message of the user came first."),
    ]


def test_an_outcome_that_the_agent_has_no_words_for_is_told_in_ours() -> None:
    told = paused(one_at_a_time({Outcome.UNKNOWN: TEMPLATE})).posted("no, this", "m2")

    assert said(told) == [("B", WORDS[Outcome.SUPERSEDED]), ("C", WORDS[Outcome.SUPERSEDED])]


def test_without_its_agent_a_call_is_told_of_in_our_words() -> None:
    told = paused(one_at_a_time({Outcome.CANCELLED: TEMPLATE}))

    events = decide_request(told.turn, i.Cancel(), at=told.at)

    contents = [event.result.content for event in events if isinstance(event, e.ToolInterrupted)]
    assert contents == [WORDS[Outcome.CANCELLED]] * 2


@pytest.mark.parametrize("given", [i.PostMessage, i.Replan])
def test_a_call_that_was_to_be_run_again_may_have_run_when_a_message_comes_first(
    given: type[i.PostMessage | i.Replan],
) -> None:
    told = Told(an_agent(limits=Limits(parallel_tools=1)))
    told.begun().answered(an_answer("", a_call("A", IDEMPOTENT), a_call("B")))
    told.paused().lost()
    assert told.turn.status is Status.PAUSED

    told.tell(given(message=a_message("no, this", "m2")))

    outcomes = [(event.result.call_id, event.result.outcome) for event in interruptions(told)]
    assert outcomes == [("A", Outcome.UNKNOWN), ("B", Outcome.SUPERSEDED)]


@pytest.mark.parametrize("given", [i.Cancel(), i.PostMessage(message=a_message("no", "m2"))])
def test_the_error_of_an_idempotent_call_does_not_show_that_nothing_was_done(
    given: i.Request,
) -> None:
    stubborn = replace(FLAKY, effect=Effect.IDEMPOTENT)
    told = Told(replace(an_agent(), tools=(stubborn,))).begun()
    told.answered(an_answer("", a_call("A", stubborn))).finished("A", outcome=Outcome.ERROR)
    assert told.turn.status is Status.RETRY_SCHEDULED

    told.tell(given)

    assert [event.result.outcome for event in interruptions(told)] == [Outcome.UNKNOWN]


def test_a_lost_call_is_told_of_in_the_words_of_its_agent() -> None:
    told = one_at_a_time({Outcome.UNKNOWN: "Ask whether {toolName} was done: {reason}."}).lost()

    assert said(told) == [("A", "Ask whether pay was done: the process that ran it was lost.")]


def test_what_is_put_into_a_template_is_no_template() -> None:
    told = one_at_a_time({Outcome.SUPERSEDED: '{"call": "{callId}"}'})
    told = Told(told.agent).begun().answered(an_answer("", a_call("A"), a_call("{reason}")))

    told = told.paused().finished("A").posted("no, this", "m2")

    assert said(told) == [("{reason}", '{"call": "{reason}"}')]


@pytest.mark.parametrize("reason", InterruptionReason)
def test_every_reason_has_words(reason: InterruptionReason) -> None:
    told = paused(one_at_a_time())
    (call, _) = told.turn.open_calls
    agent = replace(told.agent, interruption_text={Outcome.CANCELLED: "{reason}"})

    (event,) = in_words_of(agent, told.turn, [interrupted(call, Outcome.CANCELLED, reason)])

    assert isinstance(event, e.ToolInterrupted)
    assert " " in event.result.content


def test_an_interruption_of_before_reasons_were_kept_is_told_without_one() -> None:
    told = paused(one_at_a_time())
    (call, _) = told.turn.open_calls
    agent = replace(told.agent, interruption_text={Outcome.CANCELLED: "Not done. {reason}"})
    old = replace(interrupted(call, Outcome.CANCELLED, InterruptionReason.TURN_FAILED), reason=None)

    (event,) = in_words_of(agent, told.turn, [old])

    assert isinstance(event, e.ToolInterrupted)
    assert event.result.content == "Not done. "


def test_a_template_names_nothing_unknown() -> None:
    assert unknown_placeholders(TEMPLATE) == ()
    assert unknown_placeholders('{"a": 1} {} { reason } {{reason}} {tool_name} {0} {x}') == (
        "tool_name",
        "x",
    )


def test_a_call_given_up_for_a_message_names_it() -> None:
    posted = paused(one_at_a_time()).posted("no, this", "m2")
    replanned = paused(one_at_a_time()).tell(i.Replan(message=a_message("no, this", "m3")))

    assert _why(posted) == [("user_message", "m2")] * 2
    assert _why(replanned) == [("replanned", "m3")] * 2


def test_a_call_that_ends_with_its_turn_says_how_the_turn_ended() -> None:
    cancelled = paused(one_at_a_time()).cancelled()
    crashed = one_at_a_time()
    crashed.tell(i.StepCrashed(attempt_id=crashed.attempt))
    limited = Told(an_agent(limits=Limits(max_tool_calls=1))).begun()
    limited.answered(an_answer("", a_call("A"), a_call("B"))).finished("A")

    assert _why(cancelled) == [("turn_cancelled", None)] * 2
    assert _why(crashed) == [("turn_failed", None)] * 3
    assert _why(limited) == [("limit_reached", None)]


def test_case_128_one_result_per_open_call_and_one_closing_message() -> None:
    told = paused(one_at_a_time()).cancelled()

    assert told.types == ["TOOL_INTERRUPTED", "TOOL_INTERRUPTED", "MESSAGE_ADDED", "TURN_CANCELLED"]
    assert told.cancelled().last == ()


def test_what_a_turn_is_suspended_for_is_known_while_it_is() -> None:
    flaky = Told().begun().answered(an_answer("", a_call("A", FLAKY)))

    assert flaky.turn.suspension_type is None
    assert flaky.finished("A", outcome=Outcome.ERROR).turn.suspension_type == "RETRY"
    assert flaky.posted().turn.suspension_type is None
    assert flaky.asked().turn.suspension_type == "USER_INPUT"


def test_tokens_of_an_answer_that_is_none_are_counted() -> None:
    spent = Usage(input_tokens=40, output_tokens=1_000)
    told = Told().begun().answered(an_answer("", stop=StopReason.MAX_OUTPUT, usage=spent))

    assert told.turn.suspension_type == "MODEL"
    assert told.turn.usage == spent


def _why(told: Told) -> list[tuple[str | None, str | None]]:
    return [(event.reason, event.source_message_id) for event in interruptions(told)]
