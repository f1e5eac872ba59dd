"""Real processes are killed by SIGKILL at fault points; when the lease is over, another takes over.

One for each place of the crash matrix here, its stories in turn; in soak one in every cell.
"""

from collections.abc import Collection, Mapping, Sequence

from app.ports.fault_points import POINTS
from tests.e2e.conftest import Stage
from tests.support.crash_page import points_on_page
from tests.support.crash_scenarios import SCENARIOS
from tests.support.killings import PLACES, chosen_to_be_killed, kill_all
from tests.support.nursery import nursery
from tests.support.postgres import PostgresServer
from tests.support.sizes import IS_SOAK

LEAST = 20


async def test_case_55_a_process_killed_at_any_place_leaves_a_turn_that_another_brings_to_its_end(
    stage: Stage,
    postgres_server: PostgresServer,
) -> None:
    async with nursery() as nest:
        killed = await kill_all(stage, postgres_server, nest, chosen())

    assert sum(each.total() for each in killed.values()) >= LEAST


def chosen() -> Mapping[str, Sequence[str]]:
    met = {each.name: points_on_page(each) for each in SCENARIOS}
    return {n: sorted(points) for n, points in met.items()} if IS_SOAK else chosen_to_be_killed(met)


def test_a_process_is_killed_at_every_place_before_it_or_after_it() -> None:
    killed = {point for points in chosen().values() for point in points}
    met = {point for scenario in SCENARIOS for point in points_on_page(scenario)}

    assert killed <= set(POINTS)
    assert places_of(killed) == places_of(met)


def places_of(points: Collection[str]) -> set[str]:
    return {place for place in PLACES if any(point.startswith(place) for point in points)}
