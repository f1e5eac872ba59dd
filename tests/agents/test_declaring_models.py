"""Models and their fallbacks, the window of the history, and who may change what."""

from dataclasses import replace
from typing import Any

import pytest

from app.agents import Agent, AgentDeclarationError, Changeable, FailureType, HistoryWindow

PLAIN = Agent(id="clerk", instructions="")
TWO = Agent(id="clerk", instructions="", models=["a/one", "b/two"])


def test_the_first_model_is_asked_and_the_others_fall_back_for_all_but_token_limits() -> None:
    core = TWO.loaded().agent

    assert (core.model, core.fallbacks) == ("a/one", ("b/two",))
    assert core.fallback_on == set(FailureType) - {FailureType.TOKEN_LIMIT_EXCEEDED}


def test_an_agent_names_the_failures_it_falls_back_for() -> None:
    agent = replace(TWO, fallback_on={"OVERLOADED", FailureType.TOKEN_LIMIT_EXCEEDED})

    assert agent.loaded().agent.fallback_on == {
        FailureType.OVERLOADED,
        FailureType.TOKEN_LIMIT_EXCEEDED,
    }


def test_one_model_has_nothing_to_fall_back_on() -> None:
    one = Agent(id="clerk", instructions="", models=["a/one"])

    assert (one.loaded().agent.fallbacks, one.loaded().agent.fallback_on) == ((), frozenset())
    assert one.loaded().agent.model == "a/one"


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("models", "a/one"),
        ("models", ["a/one", "a/one"]),
        ("models", ["a/one", None]),
        ("models", ["with space"]),
        ("models", [f"a/{n}" for n in range(11)]),
        ("models", 7),
        ("fallback_on", {"OVERLOADED"}),
        ("on_context_full", "compact"),
        ("history", 10),
        ("history", HistoryWindow(turns=-1)),
        ("history", HistoryWindow(messages=0)),
        ("history", HistoryWindow(tokens=True)),
        ("changes", {"model": "user"}),
        ("changes", Changeable(model="everybody")),  # type: ignore[arg-type]
        ("changes", Changeable(limits="user")),  # type: ignore[arg-type]
        ("changes", Changeable(models=("a b",))),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(part: str, value: Any) -> None:  # noqa: ANN401
    with pytest.raises(AgentDeclarationError, match=part):
        replace(PLAIN, **{part: value})


def test_a_model_and_models_exclude_each_other() -> None:
    with pytest.raises(AgentDeclarationError, match="models"):
        replace(TWO, model="c/three")


@pytest.mark.parametrize("types", ["OVERLOADED", {"BUSY"}, 7])
def test_types_that_are_none_are_refused(types: Any) -> None:  # noqa: ANN401 - anything
    with pytest.raises(AgentDeclarationError, match="fallback_on"):
        replace(TWO, fallback_on=types)


@pytest.mark.parametrize(
    "changed",
    [
        replace(PLAIN, models=["a/one", "b/two"]),
        replace(PLAIN, models=["a/one", "b/two"], fallback_on={"OVERLOADED"}),
        replace(PLAIN, models=["a/one", "c/three"]),
        replace(PLAIN, on_context_full="wait"),
        replace(PLAIN, history=HistoryWindow(turns=10)),
        replace(PLAIN, changes=Changeable(model="nobody")),
        replace(PLAIN, changes=Changeable(models=("a/one",))),
    ],
)
def test_each_of_them_is_part_of_the_declaration(changed: Agent) -> None:
    assert changed.declaration_hash != PLAIN.declaration_hash


def test_what_is_left_at_its_default_changes_no_version() -> None:
    spelt_out = replace(
        PLAIN, on_context_full="compact_then_wait", history=HistoryWindow(), changes=Changeable()
    )

    assert spelt_out.exact_version == PLAIN.exact_version
