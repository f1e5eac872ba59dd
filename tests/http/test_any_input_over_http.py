"""The machine of all inputs, over HTTP and the real store: no difference from the core alone."""

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import rule, run_state_machine_as_test
from typing_extensions import override

from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.errors import Rejected
from app.turn.ids import MessageId
from app.turn.status import Status
from tests.support.sizes import size
from tests.support.told_over_http import ToldOverHttp
from tests.support.transitions import INPUTS, STATES
from tests.support.turns import Told
from tests.support.visited import REPORTS, REQUESTS, Cell, Visited, missing
from tests.support.world import World
from tests.support.world import here as here  # noqa: PLC0414 - a fixture
from tests.turn.test_any_input_in_any_state import AnyInputAndAQueue, agents

_STATUSES = [status.value for status in Status]
OF_A_CELL = size(3, soak=1_000)
"""How often a command is given in a status; the turns differ."""


def test_over_http_and_the_store_a_turn_becomes_what_the_core_says(here: World) -> None:
    class AnyInputOverHttp(AnyInputAndAQueue):
        """One turn after another, told anything by people who call and workers who report."""

        visited = Visited()

        @override
        def opened(self, agent: Agent, first_position: int, *, held: bool = False) -> Told:
            return ToldOverHttp(agent, held=held, world=here)

        @override
        def brought_to(self, story: Told) -> Told:
            return ToldOverHttp.replayed(story, here)

        @override
        def anything_might_happen_now(self) -> None:
            """No rule here: what is stored has one story only."""

        @rule(agent=agents)
        def a_newer_version_is_there(self, agent: Agent) -> None:
            """Beside the one that the turn is bound to, which goes on with its own."""
            here.catalog.add(agent)

        @rule()
        def the_message_that_opened_the_turn_comes_again(self) -> None:
            assert isinstance(self.told, ToldOverHttp)
            self.told.opened_again()

    run_state_machine_as_test(
        AnyInputOverHttp,
        settings=settings(
            max_examples=size(90, soak=1_700),
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.generate],  # to shrink a history of HTTP calls would take minutes
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )

    assert AnyInputOverHttp.visited.steps >= size(2_500, soak=50_000)
    asked = {request for _, request in AnyInputOverHttp.visited.cells}
    assert asked >= {*REQUESTS, *REPORTS}, "add a rule that tells it"


def test_over_http_every_request_in_every_status_comes_to_what_the_core_says(here: World) -> None:
    """Each against a turn that over HTTP was brought to where the table of transitions has it."""
    visited: Counter[Cell] = Counter()
    for make in STATES.values():
        told = ToldOverHttp.replayed(make(), here)
        if told.turn.is_terminal and told.turn.queue:
            continue  # it has opened the next turn, which is a state of its own
        for n, given_to in enumerate(INPUTS.values()):
            given = given_to(told)
            if not isinstance(given, i.Report):
                cell = told.turn.status, type(given).__name__
                if visited[cell] >= OF_A_CELL:
                    continue
                visited[cell] += 1
                try:
                    told.tell(_in_words_of_its_own(given, n))
                except Rejected:
                    continue  # and unchanged, as `tell` has seen to
                told = ToldOverHttp.replayed(make(), here)

    assert missing(visited, _STATUSES, REQUESTS) == ""


def _in_words_of_its_own(given: i.Request, number: int) -> i.Request:
    """Under a message id that the conversation does not know."""
    match given:
        case i.PostMessage() | i.Replan():
            message_id = MessageId(f"new-{number}")
            return replace(given, message=replace(given.message, message_id=message_id))
        case _:
            return given
