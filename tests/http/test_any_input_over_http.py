"""The machine of all inputs, over HTTP and the real store: no difference from the core alone."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import rule, run_state_machine_as_test
from typing_extensions import override

from app.turn.agent import Agent
from tests.support.sizes import size
from tests.support.told_over_http import ToldOverHttp, World, world
from tests.support.turns import Told
from tests.turn.test_any_input_in_any_state import AnyInputAndAQueue


@pytest.fixture
def here() -> Generator[World]:
    with TemporaryDirectory() as folder, asyncio.Runner() as loop:
        context = world(loop, Path(folder))
        try:
            yield loop.run(context.__aenter__())
        finally:
            loop.run(context.__aexit__(None, None, None))


def test_over_http_and_the_store_a_turn_becomes_what_the_core_says(here: World) -> None:
    class AnyInputOverHttp(AnyInputAndAQueue):
        """One turn after another, told anything by people who call and workers who report."""

        @override
        def opened(self, agent: Agent, first_position: int, *, held: bool = False) -> Told:
            return ToldOverHttp(agent, held=held, world=here)

        @rule()
        def the_message_that_opened_the_turn_comes_again(self) -> None:
            assert isinstance(self.told, ToldOverHttp)
            self.told.opened_again()

    run_state_machine_as_test(
        AnyInputOverHttp,
        settings=settings(
            max_examples=size(125, soak=1_250),
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.generate],  # to shrink a history of HTTP calls would take minutes
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
