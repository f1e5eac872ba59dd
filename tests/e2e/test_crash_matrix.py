"""A process may die at every fault point of every story: nothing is lost, doubled, stuck, refused.

Inside the test's process here, at each passage of each point; real processes are killed in
`test_killed_processes.py`. The page that names all of it is compared with what there is.
"""

import pytest

from app.ports.fault_points import POINTS
from tests.e2e.conftest import Stage
from tests.support.crash_matrix import all_die
from tests.support.crash_page import columns_on_page, points_on_page, rows_on_page
from tests.support.crash_scenarios import EVERYTHING_ELSE, SCENARIOS, SIX, Scenario

OF_NO_STORY: frozenset[str] = frozenset()
"""Points of chores that touch no open turn, whose own tests let them die."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.agent_id)
async def test_a_story_has_one_end_wherever_its_process_dies(
    stage: Stage, scenario: Scenario
) -> None:
    died = await all_die(stage, scenario, elsewhere=of_others(scenario))

    assert set(died) == points_on_page(scenario), "run scripts/crash-matrix"


def of_others(scenario: Scenario) -> set[str]:
    """Points at which the story of everything else need not die."""
    if scenario is not EVERYTHING_ELSE:
        return set()
    return set[str]().union(*map(points_on_page, SIX))


def test_the_page_has_a_row_for_each_point_and_a_column_for_each_story() -> None:
    assert list(rows_on_page()) == list(POINTS)
    assert list(columns_on_page()) == [scenario.name for scenario in SCENARIOS]


def test_there_is_no_point_at_which_no_process_dies() -> None:
    assert set(POINTS) - OF_NO_STORY == set[str]().union(*map(points_on_page, SCENARIOS))
