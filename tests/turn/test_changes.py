"""What may be changed when a turn is retried or resumed: by whom, for what, and for how long."""

from dataclasses import replace

import pytest

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Changeable, Limits
from app.turn.changes import ChangeName, Changes, models_offered, offered
from app.turn.errors import AnswerInvalid
from app.turn.failures import FailureType, ModelFailure, TokenLimitPhase
from app.turn.ids import FailureId
from app.turn.status import Status
from app.turn.transcript import StopReason
from tests.support.turns import (
    OVERLOADED,
    QUOTA,
    REFUSED,
    TOO_LONG,
    Told,
    a_call,
    an_agent,
    an_answer,
)

EVERY = Changes(
    model="other/large", max_output_tokens=99, compact=True, keep_turns=3, limits=Limits()
)
ONE_BY_ONE = (
    Changes(model="other/large"),
    Changes(max_output_tokens=99),
    Changes(compact=True),
    Changes(keep_turns=0),
    Changes(limits=Limits(max_iterations=7)),
)


def limit(phase: TokenLimitPhase | None) -> ModelFailure:
    return replace(TOO_LONG, token_limit_phase=phase)


def waiting(failure: ModelFailure) -> Told:
    return Told().begun().gave_up(failure)


def accepted(told: Told) -> tuple[ChangeName, ...]:
    """The changes that are taken, asked for one by one."""
    names: list[ChangeName] = []
    for changes in ONE_BY_ONE:
        try:
            told.branched().retried(changes=changes)
        except AnswerInvalid:
            continue
        names += changes.names
    return tuple(names)


@pytest.mark.parametrize(
    ("failure", "help_it"),
    [
        (QUOTA, ("model", "limits")),
        (OVERLOADED, ("model", "limits")),
        (replace(QUOTA, type=FailureType.RATE_LIMITED), ("model", "limits")),
        (replace(QUOTA, type=FailureType.UNAVAILABLE), ("model", "limits")),
        (limit(TokenLimitPhase.INPUT_CONTEXT), ("model", "compact", "keepTurns", "limits")),
        (limit(TokenLimitPhase.OUTPUT), ("model", "maxOutputTokens", "limits")),
        (limit(TokenLimitPhase.TOTAL_CONTEXT), EVERY.names),
        (limit(TokenLimitPhase.UNKNOWN), EVERY.names),
        (limit(None), EVERY.names),
    ],
)
def test_what_can_help_with_a_failure_is_offered_and_taken_and_nothing_else(
    failure: ModelFailure, help_it: tuple[ChangeName, ...]
) -> None:
    told = waiting(failure)

    assert offered(told.turn, told.agent, by_operator=True) == help_it
    assert accepted(told) == help_it


def test_a_change_that_cannot_help_is_refused_by_its_name_and_nothing_happens() -> None:
    told = waiting(QUOTA)
    before = list(told.events)

    with pytest.raises(AnswerInvalid) as refused:
        told.retried(changes=Changes(model="other/large", compact=True))

    assert (
        refused.value.detail
        == "changes.compact: it does not help with QUOTA_EXCEEDED; leave it out"
    )
    assert told.events == before


def test_case_32_a_plain_retry_of_a_token_limit_is_taken_and_fails_with_a_new_id() -> None:
    told = waiting(TOO_LONG).retried().begun().gave_up(TOO_LONG, failure_id="f2")

    failure = told.turn.current_failure
    assert told.turn.status is Status.WAITING_FOR_MODEL
    assert failure is not None
    assert (failure.failure_id, failure.failure.type) == ("f2", FailureType.TOKEN_LIMIT_EXCEEDED)
    assert told.turn.counters.retries == 0


def test_changes_are_recorded_and_hold_for_the_rest_of_the_turn() -> None:
    changes = Changes(model="other/large", max_output_tokens=99, keep_turns=0)
    told = waiting(limit(TokenLimitPhase.TOTAL_CONTEXT)).retried(changes=changes)

    (resumed,) = told.last
    assert isinstance(resumed, e.TurnResumed)
    assert (resumed.model, resumed.max_output_tokens, resumed.keep_turns) == ("other/large", 99, 0)

    told.begun().answered(an_answer("", a_call("A"))).finished("A")
    told.gave_up(OVERLOADED, failure_id="f2").retried("f2").begun()
    assert told.turn.model_under(told.agent) == "other/large"
    assert (told.turn.max_output_tokens, told.turn.keep_turns) == (99, 0)


def test_a_later_change_leaves_what_it_does_not_name() -> None:
    told = waiting(limit(TokenLimitPhase.TOTAL_CONTEXT))
    told.retried(changes=Changes(keep_turns=2, max_output_tokens=99)).begun()
    told.gave_up(TOO_LONG, failure_id="f2").retried("f2", Changes(keep_turns=0))

    assert (told.turn.max_output_tokens, told.turn.keep_turns) == (99, 0)


def test_a_paused_turn_is_offered_other_limits_by_operators_only() -> None:
    told = Told().begun().paused()

    assert offered(told.turn, told.agent, by_operator=True) == ("limits",)
    assert offered(told.turn, told.agent) == ()


@pytest.mark.parametrize("told", [Told(), Told().begun(), Told().begun().answered(an_answer("k"))])
def test_nothing_is_offered_where_nothing_waits_for_the_model(told: Told) -> None:
    assert offered(told.turn, told.agent, by_operator=True) == ()


def test_the_agents_version_says_who_may_change_what() -> None:
    told = waiting(limit(None))
    strict = replace(
        told.agent, changeable=Changeable(model="nobody", compact="operator", limits="nobody")
    )

    assert offered(told.turn, strict) == ("maxOutputTokens", "keepTurns")
    assert offered(told.turn, strict, by_operator=True) == (
        "maxOutputTokens",
        "compact",
        "keepTurns",
    )


def test_the_models_of_an_agent_are_offered_without_the_one_that_failed() -> None:
    agent = replace(
        an_agent(),
        model="a/one",
        fallbacks=("b/two", "c/three"),
        fallback_on=frozenset({FailureType.OVERLOADED}),
        changeable=Changeable(models=("b/two", "a/one", "d/four")),
    )
    told = Told(agent).begun()

    assert models_offered(told.turn, agent) == ("b/two", "d/four")
    assert models_offered(told.gave_up(OVERLOADED).turn, agent) == ("a/one", "d/four")


@pytest.mark.parametrize(
    "changes", [Changes(model="other/large"), Changes(keep_turns=0), Changes(limits=Limits())]
)
def test_a_request_that_is_refused_behind_a_change_waits_for_it_to_be_changed_back(
    changes: Changes,
) -> None:
    told = waiting(TOO_LONG).retried(changes=changes).begun().refused(failure_id="f2")

    failure = told.turn.current_failure
    assert failure is not None
    assert (failure.failure_id, failure.failure.type) == ("f2", FailureType.UNAVAILABLE)
    assert not failure.failure.retryable
    assert told.turn.counters.model_failures == 2


def test_once_an_answer_has_come_behind_a_change_a_refused_request_fails_the_turn() -> None:
    told = waiting(QUOTA).retried(changes=Changes(model="other/large")).begun()
    told.answered(an_answer("", a_call("A"))).finished("A").refused(failure_id="f2")

    assert told.turn.status is Status.FAILED


def test_a_plain_retry_is_no_change() -> None:
    told = waiting(QUOTA).retried().begun().refused(failure_id="f2")

    assert told.turn.status is Status.FAILED


def test_an_answer_that_stops_at_the_end_of_the_window_is_a_token_limit_and_its_text_is_kept() -> (
    None
):
    told = Told().begun().answered(an_answer("Half of", stop=StopReason.CONTEXT_FULL))

    failure = told.turn.current_failure
    assert failure is not None
    assert failure.failure.token_limit_phase is TokenLimitPhase.TOTAL_CONTEXT
    assert "MODEL_TEXT" in told.types
    assert list(told.transcript) == [0, 1], "as a partial message"


def asked_at(told: Told, where: str, ending: ModelFailure | None = None) -> Told:
    """The model answers with a call that ends, or fails, and was asked there."""
    if ending is not None:
        return told.tell(
            i.ModelGaveUp(
                attempt_id=told.attempt,
                failure=ending,
                failure_id=FailureId(f"f-{where}"),
                asked=where,
            )
        )
    told.tell(
        i.ModelAnswered(
            attempt_id=told.attempt,
            answer=an_answer("", a_call("A")),
            next_attempt_id=told.draw(),
            failure_id=FailureId(f"f-{where}"),
            asked=where,
        )
    )
    return told.finished("A")


def refused_at(told: Told, where: str, failure_id: str = "f9") -> Told:
    return told.tell(
        i.ModelRefused(
            attempt_id=told.attempt,
            refusal=REFUSED,
            failure_id=FailureId(failure_id),
            asked=where,
        )
    )


@pytest.mark.parametrize("ending", [None, QUOTA])
def test_a_request_that_is_refused_elsewhere_than_the_last_one_was_taken_waits(
    ending: ModelFailure | None,
) -> None:
    told = asked_at(Told().begun(), "here", ending)
    if ending is not None:
        told.retried("f-here").begun()

    there = refused_at(told.branched(), "there")
    assert there.turn.status is Status.WAITING_FOR_MODEL
    again = refused_at(there.retried("f9").begun(), "there", "f10")
    assert again.turn.status is Status.WAITING_FOR_MODEL, "and so does a retry that changes nothing"

    assert refused_at(told.branched(), "here").turn.status is Status.FAILED


def test_a_first_request_that_is_refused_fails_the_turn_wherever_it_was_sent() -> None:
    assert refused_at(Told().begun(), "here").turn.status is Status.FAILED
