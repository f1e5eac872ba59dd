"""What a caller may change with an action, and that nothing else is said to help."""

from dataclasses import replace

import pytest

from app.turn.actions import Action, actions
from app.turn.agent import Agent, Changeable, RetryPolicy
from app.turn.changes import ChangeName
from app.turn.failures import ModelFailure, TokenLimitPhase
from app.turn.offering import with_changes
from app.turn.retry_advice import Remedy
from tests.support.turns import OVERLOADED, QUOTA, TOO_LONG, Told, an_agent

TOO_LONG_IN_ALL = replace(TOO_LONG, token_limit_phase=TokenLimitPhase.TOTAL_CONTEXT)
CUT = replace(TOO_LONG, token_limit_phase=TokenLimitPhase.OUTPUT)
NOTHING = Changeable(
    model="nobody",
    max_output_tokens="nobody",
    compact="nobody",
    keep_turns="nobody",
    limits="nobody",
)


def told_to(
    changeable: Changeable, failure: ModelFailure, *, by_operator: bool = False
) -> dict[str, Action]:
    """The actions of a turn that waits for its model, by their commands."""
    agent: Agent = replace(an_agent(), model="a/one", changeable=changeable)
    turn = Told(agent).begun().gave_up(failure)
    found = [
        with_changes(each, turn.turn, agent, by_operator=by_operator)
        for each in actions(turn.turn, at=turn.at)
    ]
    return {action.command: action for action in found}


@pytest.mark.parametrize(
    ("changeable", "failure", "helps"),
    [
        (Changeable(), TOO_LONG_IN_ALL, ("shorter_history", "shorter_answer", "other_model")),
        (Changeable(model="operator"), TOO_LONG_IN_ALL, ("shorter_history", "shorter_answer")),
        (Changeable(models=("a/one",)), TOO_LONG_IN_ALL, ("shorter_history", "shorter_answer")),
        (
            replace(NOTHING, keep_turns="user"),
            TOO_LONG_IN_ALL,
            ("shorter_history",),
        ),
        (
            replace(NOTHING, max_output_tokens="user"),
            CUT,
            ("shorter_answer", "higher_output_limit"),
        ),
        (NOTHING, TOO_LONG_IN_ALL, ()),
        (NOTHING, CUT, ()),
        (NOTHING, QUOTA, ("top_up",)),
        (replace(NOTHING, model="user"), QUOTA, ("top_up", "other_model")),
    ],
)
def test_case_32_what_is_said_to_help_is_offered_to_whoever_reads_it(
    changeable: Changeable, failure: ModelFailure, helps: tuple[Remedy, ...]
) -> None:
    retry = told_to(changeable, failure)["RETRY_MODEL"]

    assert retry.enabled
    assert retry.helps == helps


@pytest.mark.parametrize(
    ("by_operator", "names"),
    [(False, ("compact", "keepTurns")), (True, ("model", "compact", "keepTurns", "limits"))],
)
def test_a_retry_carries_what_a_user_or_an_operator_may_change(
    names: tuple[ChangeName, ...], *, by_operator: bool
) -> None:
    changeable = Changeable(model="operator", models=("a/one", "b/two"))

    found = told_to(changeable, TOO_LONG, by_operator=by_operator)

    assert found["RETRY_MODEL"].changes == names
    assert found["RETRY_MODEL"].models == (("b/two",) if by_operator else ())
    assert [a.command for a in found.values() if a.changes or a.models] == ["RETRY_MODEL"]


def test_a_model_is_no_change_where_the_only_one_is_asked_already() -> None:
    retry = told_to(Changeable(models=("a/one",)), OVERLOADED)["RETRY_MODEL"]

    assert (retry.changes, retry.models) == ((), ())


def test_where_any_model_may_be_named_it_may_without_one_that_is_known() -> None:
    retry = told_to(Changeable(), OVERLOADED)["RETRY_MODEL"]

    assert (retry.changes, retry.models) == (("model",), ())


def test_a_paused_turn_takes_limits_of_operators_alone() -> None:
    told = Told().paused()
    [resume] = [a for a in actions(told.turn, at=told.at) if a.command == "RESUME"]

    by_user = with_changes(resume, told.turn, told.agent, by_operator=False)
    by_operator = with_changes(resume, told.turn, told.agent, by_operator=True)

    assert (by_user.changes, by_operator.changes) == ((), ("limits",))


def test_a_scheduled_retry_takes_no_changes_and_names_no_help_that_needs_one() -> None:
    agent = replace(an_agent(), retry=RetryPolicy(max_retries=1))
    told = Told(agent).begun().gave_up(OVERLOADED)
    again = Action(command="CONTINUE", helps=("top_up", "other_model", "shorter_answer"))

    found = with_changes(again, told.turn, agent, by_operator=True)

    assert found == Action(command="CONTINUE", helps=("top_up",))
