"""A process may die at every fault point of every story: nothing is lost, doubled, stuck, refused.

Inside the test's process here, at the first passage of each point, and in `scripts/soak` at every
one; real processes are killed in `test_killed_processes.py`. The page that names all of it is
compared with what there is.
"""

from datetime import timedelta

import pytest

from app.ports.fault_points import POINTS, watched_by
from app.store.clock import DatabaseClock
from app.store.feeds import PostgresFeeds
from app.store.pool import connected
from app.store.turns import PostgresTurns
from app.workers.housekeeper import Housekeeper
from tests.e2e.conftest import Stage
from tests.support.crash_matrix import all_die, told
from tests.support.crash_page import columns_on_page, points_on_page, rows_on_page
from tests.support.crash_scenarios import EVERYTHING_ELSE, PLAIN, SCENARIOS, SEVEN, Scenario
from tests.support.deaths import Death, Doom

CHORES = [f"commit.{kind}.{side}" for kind in ("folded", "pruned") for side in ("before", "after")]
"""Points at which no open turn is touched: they are in no story."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.agent_id)
async def test_a_story_has_one_end_wherever_its_process_dies(
    stage: Stage, scenario: Scenario
) -> None:
    died = await all_die(stage, scenario, elsewhere=of_others(scenario))

    assert set(died) == points_on_page(scenario), "run scripts/crash-matrix"


@pytest.mark.parametrize("point", CHORES)
async def test_a_chore_that_dies_is_done_by_the_next_one_and_takes_nothing_else_along(
    stage: Stage, point: str
) -> None:
    record = await told(stage, PLAIN, Doom(()), "ses_tidied")
    turn_id = record.turn.identity.turn_id
    async with connected(stage.dsn, size=1) as database:
        feeds, clock = PostgresFeeds(database), DatabaseClock()
        await clock.synchronise(database)
        at_once = timedelta(0)
        keeper = Housekeeper(upkeep=feeds, clock=clock, fold_after=at_once, keep_events=at_once)
        with watched_by(Doom([(point, 1)]).meets), pytest.raises(Death):
            await keeper.tidy()
        await keeper.tidy()

        assert await feeds.to_fold(ended_before=clock(), limit=10) == []
        assert await feeds.pruned_through(turn_id) != 0
        assert await PostgresTurns(database).load(turn_id) == record.turn
        assert await PostgresTurns(database).history(record.turn) != []


def of_others(scenario: Scenario) -> set[str]:
    """Points at which the story of everything else need not die."""
    if scenario is not EVERYTHING_ELSE:
        return set()
    return set[str]().union(*map(points_on_page, SEVEN))


def test_the_page_has_a_row_for_each_point_and_a_column_for_each_story() -> None:
    assert list(rows_on_page()) == list(POINTS)
    assert list(columns_on_page()) == [scenario.name for scenario in SCENARIOS]


def test_there_is_no_point_at_which_no_process_dies() -> None:
    assert set(POINTS) - set(CHORES) == set[str]().union(*map(points_on_page, SCENARIOS))
