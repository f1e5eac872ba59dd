"""Real processes are killed by SIGKILL at fault points; when the lease is over, another takes over.

One for each place of the crash matrix here, its stories in turn; in soak all of them.
"""

import asyncio
from collections.abc import Iterable

from app.ports.fault_points import POINTS
from tests.e2e.conftest import Stage
from tests.support.crash_matrix import Passage
from tests.support.crash_page import points_on_page
from tests.support.crash_scenarios import SCENARIOS, Scenario
from tests.support.killings import is_killed
from tests.support.nursery import Nursery, nursery
from tests.support.sizes import IS_SOAK

AT_ONCE = 3
LEAST = 20


async def test_a_process_killed_at_any_place_leaves_a_turn_that_another_brings_to_its_end(
    stage: Stage,
) -> None:
    free = asyncio.Semaphore(AT_ONCE)
    async with nursery() as nest:
        told = await asyncio.gather(*(all_of(stage, nest, s, free) for s in SCENARIOS))

    assert sum(told) >= LEAST


async def all_of(stage: Stage, nest: Nursery, scenario: Scenario, free: asyncio.Semaphore) -> int:
    """One process behind another is killed in this story; how many were."""
    passages = chosen(scenario)
    for passage in passages:
        async with free:
            assert await is_killed(stage, nest, scenario, passage), passage
    return len(passages)


def chosen(scenario: Scenario) -> list[Passage]:
    every = [point for point in POINTS if point in points_on_page(scenario)]
    return [(p, 1) for p in every if IS_SOAK or mine(scenario, p, in_which(p))]


def in_which(point: str) -> list[Scenario]:
    return [scenario for scenario in SCENARIOS if point in points_on_page(scenario)]


def mine(scenario: Scenario, point: str, stories: list[Scenario]) -> bool:
    """Whether it is this story's turn to be killed here; of two points of a place one is taken."""
    number = places().index(place_of(point))
    taken = point if point not in sides(point) else sides(point)[number % 2]
    return point == taken and stories[number % len(stories)] is scenario


def place_of(point: str) -> str:
    return point.removesuffix(".before").removesuffix(".after")


def places() -> list[str]:
    return list(dict.fromkeys(map(place_of, POINTS)))


def sides(point: str) -> tuple[str, str]:
    return f"{place_of(point)}.before", f"{place_of(point)}.after"


def kinds(points: Iterable[str]) -> set[str]:
    return {point.partition(".")[0] for point in points}


def test_the_places_of_every_run_are_of_all_kinds() -> None:
    points = [point for scenario in SCENARIOS for point, _ in chosen(scenario)]

    assert kinds(points) == {"commit", "claim", "tool", "model", "http"}
    assert {place_of(point) for point in points} == set(places())
