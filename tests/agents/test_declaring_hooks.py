"""Hooks in a declaration: a value of the right kind, known by the name of its class."""

from typing import Any, cast

import pytest
from typing_extensions import override

from app.agents import Agent, AgentDeclarationError, Hooks, Run

PLAIN = Agent(id="support", instructions="Help.")


class One(Hooks):
    """Does something."""

    @override
    async def before_run(self, run: Run) -> None:
        del run


class Another(Hooks):
    """Does nothing."""


class Blocking(Hooks):
    """Was written without async."""

    @override
    def before_run(self, run: Run) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        del run


def declared(hooks: object) -> Agent:
    return cast("Agent", cast("Any", Agent)(id="support", instructions="Help.", hooks=hooks))


def test_an_agent_brings_its_hooks() -> None:
    hooks = One()

    assert declared(hooks).loaded().hooks is hooks
    assert PLAIN.loaded().hooks is None


def test_the_version_follows_from_the_name_of_the_class() -> None:
    versions = {declared(hooks).exact_version for hooks in (None, One(), Another())}

    assert len(versions) == 3
    assert declared(One()).declaration_hash == declared(One()).declaration_hash
    assert declared(None).declaration_hash == PLAIN.declaration_hash


@pytest.mark.parametrize("hooks", [One, "House", 7, object()], ids=["class", "text", "int", "any"])
def test_what_is_no_hooks_is_refused(hooks: object) -> None:
    with pytest.raises(AgentDeclarationError, match="hooks must be an instance of a class"):
        declared(hooks)


def test_a_hook_that_is_not_async_is_refused_with_its_name() -> None:
    with pytest.raises(AgentDeclarationError, match=r"hooks\.before_run must be .*'async def'"):
        declared(Blocking())
