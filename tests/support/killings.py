"""A real process kills itself at a fault point; another worker takes over when its lease is over.

Several stories are told at once, each over a database of its own: whatever a process does for all
turns there are (it ends waits, folds, forgets) another story's would do for this one.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import httpx

from app.entrypoints import wiring
from app.ports.fault_points import MID_ARGUMENTS, POINTS
from tests.e2e.conftest import Stage
from tests.support import crash_scenarios
from tests.support.crash_matrix import (
    RELEASING,
    RENEWING,
    Passage,
    check_told,
    in_process,
    slow,
)
from tests.support.crash_scenarios import SCENARIOS, Person, Scenario, Turn, agents_of
from tests.support.deaths import working
from tests.support.nursery import Child, Nursery
from tests.support.postgres import PostgresServer
from tests.support.service import TOKEN, settings_for_tests, signed_in
from tests.support.story import FOLDER_VARIABLE

LEASE_SECONDS = 2.0
_AT_ONCE = 3
_TRIES = 3
_STORY_TAKES_SECONDS = 120
_KILLED = -signal.SIGKILL


def chosen_to_be_killed(
    met: Mapping[str, Collection[str]],
) -> Mapping[str, Sequence[str]]:
    """For every run of the tests: one point of each place, the stories that pass it in turn.

    `met` are the points of each story, by its name.
    """
    found: dict[str, list[str]] = {name: [] for name in met}
    for number, place in enumerate(PLACES):
        sides = [point for point in POINTS if place in (point, _place_of(point))]
        point = sides[number % len(sides)]
        stories = [name for name in met if point in met[name]]
        if stories:
            found[stories[number % len(stories)]].append(point)
    return found


def _place_of(point: str) -> str:
    return point.removesuffix(".before").removesuffix(".after")


PLACES = tuple(dict.fromkeys(map(_place_of, POINTS)))
"""What has a point before and one after it, and each point that stands alone."""


async def kill_all(
    stage: Stage, server: PostgresServer, nursery: Nursery, chosen: Mapping[str, Sequence[str]]
) -> Mapping[str, Counter[str]]:
    """Kill a process at each of these points of each story, several stories at once; how many.

    Raises:
        AssertionError: as `is_killed`; a process was not killed.
    """
    free = asyncio.Semaphore(_AT_ONCE)

    async def killed(scenario: Scenario) -> Counter[str]:
        found: Counter[str] = Counter()
        async with _apart(stage, server) as own:
            for point in chosen[scenario.name]:
                async with free:
                    found[point] += await _is_killed_in_the_end(own, nursery, scenario, point)
                assert found[point], f"nothing was killed at {point} of {scenario.name}"
        return found

    told = await asyncio.gather(*map(killed, SCENARIOS))
    return {scenario.name: found for scenario, found in zip(SCENARIOS, told, strict=True)}


@asynccontextmanager
async def _apart(stage: Stage, server: PostgresServer) -> AsyncGenerator[Stage]:
    dsn = await server.fresh_database()
    yield replace(stage, dsn=dsn)
    await server.drop_database(dsn)


async def _is_killed_in_the_end(
    stage: Stage, nursery: Nursery, scenario: Scenario, point: str
) -> bool:
    """A machine that stands still for a second takes a claim away, and with it its release."""
    for again in range(_TRIES):
        conversation = f"ses_{scenario.agent_id}_{point}_killed_{again}"
        if await is_killed(stage, nursery, scenario, (point, 1), conversation):
            return True
    return False


async def is_killed(
    stage: Stage, nursery: Nursery, scenario: Scenario, passage: Passage, conversation: str
) -> bool:
    """Tell a story whose processes kill themselves, the last at this passage; whether it did.

    Raises:
        AssertionError: something was lost, doubled, stuck, or refused by the provider.
    """
    point, _ = passage
    # On a busy machine an answer comes in one piece, which has no middle.
    is_slow = point in {*RENEWING, *RELEASING, MID_ARGUMENTS}
    stage.provider.script(scenario.model, slow(scenario.rounds) if is_slow else scenario.rounds)
    turn: Turn | None = None
    was_killed = False
    async with asyncio.timeout(_STORY_TAKES_SECONDS):
        for death in (*scenario.dies_first, passage):
            log = stage.ledger.folder / f"{conversation}_{death[0]}.log"
            child = await nursery.born(_environment(stage, scenario, death), log)
            turn = await _told_until_death(stage, scenario, child, conversation)
            was_killed = turn is None and await child.ended() == _KILLED
            assert turn or was_killed or point in RELEASING, child.log.read_text()
        turn = turn or await _taken_over(stage, scenario, conversation)
    await check_told(stage, scenario, turn)
    return was_killed


async def _told_until_death(
    stage: Stage, scenario: Scenario, child: Child, conversation: str
) -> Turn | None:
    """The story's end; `None`: the process has come to its own before."""
    url = await child.url()
    if url is None:
        return None
    async with signed_in(url) as http:
        person = _person(stage, scenario, conversation, http)
        telling = asyncio.create_task(scenario.told(person))
        stopping = asyncio.create_task(_stopped(child, person))
        dying = asyncio.create_task(child.ended())
        await asyncio.wait((telling, dying), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if telling.done() and telling.exception() is None:
            dying.cancel()
            child.kill()
            return telling.result()
        await dying
        telling.cancel()
        with suppress(asyncio.CancelledError, httpx.HTTPError):
            await telling
        return None


async def _stopped(child: Child, person: Person) -> None:
    """A process that is to die while it gives its claims back is asked to stop in mid-answer."""
    if not any(point in child.log.name for point in RELEASING):
        return

    def is_asking(turn: Turn) -> bool:
        return bool(turn["counters"]["modelAttempts"])

    with suppress(httpx.HTTPError):
        await person.rests(await person.begins(), but_for=is_asking)
        child.terminate()


async def _taken_over(stage: Stage, scenario: Scenario, conversation: str) -> Turn:
    """The story's end, as another process brings it about once the dead one's lease is over."""
    async with (
        _survivor(stage, scenario) as runtime,
        working(runtime),
        in_process(runtime) as http,
    ):
        return await scenario.told(_person(stage, scenario, conversation, http))


def _person(stage: Stage, scenario: Scenario, conversation: str, http: httpx.AsyncClient) -> Person:
    return Person(http=http, scenario=scenario, conversation=conversation, ledger=stage.ledger)


@asynccontextmanager
async def _survivor(stage: Stage, scenario: Scenario) -> AsyncGenerator[wiring.Runtime]:
    settings = settings_for_tests(
        stage.settings.data_dir, openai_base_url=stage.provider.base_url, claim_lease_seconds=15
    )
    agents = [agent for agent in agents_of(stage.ledger) if agent.id == scenario.agent_id]
    async with wiring.build(
        settings, stage.dsn, stopping=asyncio.Event(), agents=agents
    ) as runtime:
        yield runtime


def _environment(stage: Stage, scenario: Scenario, death: Passage) -> dict[str, str]:
    ours = ("TURNKEEPER_", "OPENAI_", "DATABASE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    point, n = death
    return kept | {
        "DATABASE_URL": stage.dsn,
        "OPENAI_BASE_URL": stage.provider.base_url,
        "TURNKEEPER_AGENTS": f"{crash_scenarios.__name__}:agents",
        "TURNKEEPER_CLAIM_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
        "TURNKEEPER_CLAIM_RENEW_SECONDS": "0.1" if point in RENEWING else "0.5",
        "TURNKEEPER_CLAIM_POLL_SECONDS": "0.2",
        "TURNKEEPER_DATA_DIR": str(stage.ledger.folder),
        "TURNKEEPER_ENVIRONMENT": "test",
        "TURNKEEPER_FAULT_POINT": f"{point}:{n}",
        "TURNKEEPER_HAND_OVER": str(scenario.is_handed_over),
        "TURNKEEPER_PORT": "0",
        "TURNKEEPER_TOKEN": TOKEN,
        FOLDER_VARIABLE: str(stage.ledger.folder),
        crash_scenarios.SCENARIO_VARIABLE: scenario.agent_id,
    }
